// An echo role with a minimal MPE: it receives a message of INT from rank 0 and sends it back, packet by packet:
// SEND_REQUEST, CLEAR_TO_SEND, DATA, ACK. It has the ports of the role's interface to the cloudFPGA shell Themisto.
// docs/cosim.md has the rules of the ports, docs/ZRLMPI_protocol.md the rules of the packets.
//
// Arguments of the program: +sender sends messages of +words=N words to rank 0; word i is i. +receiver only receives.
// +timeout=N is the number of cycles after which a packet is retransmitted.
module role (
    input  wire        piSHL_156_25Clk,
    input  wire        piSHL_156_25Rst,
    input  wire        piMMIO_Ly7_Rst,
    input  wire        piMMIO_Ly7_En,
    input  wire [31:0] piFMC_ROLE_rank,
    input  wire [31:0] piFMC_ROLE_size,
    // Received datagrams.
    input  wire [63:0] siNRC_Udp_Data_tdata,
    input  wire [7:0]  siNRC_Udp_Data_tkeep,
    input  wire        siNRC_Udp_Data_tlast,
    input  wire        siNRC_Udp_Data_tvalid,
    output wire        siNRC_Udp_Data_tready,
    input  wire [63:0] siNRC_Role_Udp_Meta_TDATA,
    input  wire [7:0]  siNRC_Role_Udp_Meta_TKEEP,
    input  wire        siNRC_Role_Udp_Meta_TLAST,
    input  wire        siNRC_Role_Udp_Meta_TVALID,
    output wire        siNRC_Role_Udp_Meta_TREADY,
    // Datagrams to be sent.
    output wire [63:0] soNRC_Udp_Data_tdata,
    output wire [7:0]  soNRC_Udp_Data_tkeep,
    output wire        soNRC_Udp_Data_tlast,
    output wire        soNRC_Udp_Data_tvalid,
    input  wire        soNRC_Udp_Data_tready,
    output wire [63:0] soROLE_Nrc_Udp_Meta_TDATA,
    output wire [7:0]  soROLE_Nrc_Udp_Meta_TKEEP,
    output wire        soROLE_Nrc_Udp_Meta_TLAST,
    output wire        soROLE_Nrc_Udp_Meta_TVALID,
    input  wire        soROLE_Nrc_Udp_Meta_TREADY,
    // Bit 0 opens port 2718.
    output wire [31:0] poROL_Nrc_Udp_Rx_ports
);
  localparam LINES = 4096;           // the longest message has 8192 words
  localparam DATAGRAM_LINES = 177;   // the longest datagram has 1416 bytes
  localparam HEADER_LINES = 4;
  localparam PEER = 8'd0;
  localparam [15:0] PORT = 16'd2718;
  localparam [31:0] MARK = 32'h96969696;
  localparam [7:0] SEND_INT = 0, RECV_INT = 1;                              // calls
  localparam [7:0] SEND_REQUEST = 1, CLEAR_TO_SEND = 2, DATA = 3, ACK = 4;  // types of packets
  // States that wait for a packet have bit 2 clear, states that send one have it set.
  localparam W_REQUEST = 0, W_DATA = 1, W_CLEAR = 2, W_ACK = 3, S_CLEAR = 4, S_ACK = 5, S_REQUEST = 6, S_DATA = 7;

  reg sender = 0, receiver = 0;
  reg [31:0] timeout = 15_625_000;  // 100 ms
  reg [31:0] own_words = 1;
  reg [63:0] message[0:LINES-1];
  integer i;
  initial begin
    if ($test$plusargs("sender")) sender = 1;
    if ($test$plusargs("receiver")) receiver = 1;
    if (!$value$plusargs("timeout=%d", timeout)) timeout = 15_625_000;
    if (!$value$plusargs("words=%d", own_words)) own_words = 1;
    for (i = 0; i < LINES; i = i + 1) message[i] = {i[30:0], 1'b1, i[30:0], 1'b0};
  end

  reg [2:0] state;
  wire sending = state[2];
  wire waiting = !state[2];
  reg [31:0] words;
  wire [31:0] lines = (words + 1) >> 1;
  reg [31:0] timer;

  assign poROL_Nrc_Udp_Rx_ports = piSHL_156_25Rst ? 0 : 1;

  // The packet being sent: a header, followed by the lines of the message for DATA.
  reg [31:0] out_line;      // line of the packet
  reg [7:0] out_at;         // line of the datagram
  reg meta_due;             // of the datagram
  wire [7:0] out_call = state == S_REQUEST || state == S_DATA ? SEND_INT : RECV_INT;
  wire [7:0] out_type = state == S_REQUEST ? SEND_REQUEST : state == S_CLEAR ? CLEAR_TO_SEND : state == S_DATA ? DATA : ACK;
  wire [31:0] out_size = state == S_DATA ? words : 0;
  wire [31:0] out_lines = state == S_DATA ? HEADER_LINES + lines : HEADER_LINES;
  wire out_end = out_line == out_lines - 1;
  wire [63:0] out_message = message[out_line[11:0]-12'd4];
  assign soROLE_Nrc_Udp_Meta_TVALID = sending && meta_due;
  assign soROLE_Nrc_Udp_Meta_TDATA  = {16'd0, PORT, piFMC_ROLE_rank[7:0], PORT, PEER};  // len 0: tlast ends the datagram
  assign soROLE_Nrc_Udp_Meta_TKEEP  = 8'hff;
  assign soROLE_Nrc_Udp_Meta_TLAST  = 1;
  assign soNRC_Udp_Data_tvalid = sending && !meta_due;
  assign soNRC_Udp_Data_tkeep  = 8'hff;
  assign soNRC_Udp_Data_tlast  = out_end || out_at == DATAGRAM_LINES - 1;
  assign soNRC_Udp_Data_tdata  = out_line == 0 ? {24'd0, PEER, MARK}
                               : out_line == 1 ? {out_size, piFMC_ROLE_rank}
                               : out_line == 2 ? {48'd0, out_type, out_call}
                               : out_line == 3 ? {MARK, 32'd0}
                               : out_end && words[0] ? {32'd0, out_message[31:0]} : out_message;  // padding is 0

  // The datagram being received: its metadata first.
  reg have_meta;
  reg [7:0] from;
  reg [2:0] in_line;        // line of the header, then HEADER_LINES
  reg header_good;          // its lines so far
  reg [7:0] in_call, in_type;
  reg [31:0] in_size;
  reg in_message;           // receiving the rest of a message after DATA
  reg [31:0] got;           // lines of it
  assign siNRC_Role_Udp_Meta_TREADY = waiting && !have_meta;
  assign siNRC_Udp_Data_tready = waiting && have_meta;
  wire take = siNRC_Udp_Data_tvalid && siNRC_Udp_Data_tready;
  wire [63:0] line = siNRC_Udp_Data_tdata;
  wire header_ends = take && !in_message && in_line == HEADER_LINES - 1 && header_good && line == {MARK, 32'd0};
  wire control = header_ends && siNRC_Udp_Data_tlast && in_size == 0;
  wire begins = header_ends && !siNRC_Udp_Data_tlast && in_type == DATA && in_call == SEND_INT && state == W_DATA
      && in_size > 0 && in_size <= 2 * LINES;
  wire stores = take && in_message;
  wire repeated = header_ends && !siNRC_Udp_Data_tlast && in_type == DATA && state == W_REQUEST && receiver;
  reg answer;               // acknowledge a retransmitted message again

  task send(input [2:0] packet);
    begin
      state <= packet;
      out_line <= 0;
      out_at <= 0;
      meta_due <= 1;
    end
  endtask

  task wait_for(input [2:0] packet);
    begin
      state <= packet;
      timer <= 0;
    end
  endtask

  always @(posedge piSHL_156_25Clk) begin
    if (piSHL_156_25Rst || piMMIO_Ly7_Rst) begin
      state <= W_REQUEST;
      words <= own_words;
      have_meta <= 0;
      in_line <= 0;
      header_good <= 1;
      in_message <= 0;
      answer <= 0;
      timer <= 0;
      if (sender) send(S_REQUEST);
    end else begin
      // A datagram arrives.
      if (siNRC_Role_Udp_Meta_TVALID && siNRC_Role_Udp_Meta_TREADY) begin
        have_meta <= 1;
        from <= siNRC_Role_Udp_Meta_TDATA[31:24];
      end
      if (take) begin
        timer <= 0;
        if (!in_message && in_line < HEADER_LINES) begin
          in_line <= in_line + 1;
          case (in_line)
            0: header_good <= from == PEER && line == {piFMC_ROLE_rank, MARK};
            1: begin
              in_size <= line[63:32];
              header_good <= header_good && line[31:0] == {24'd0, from};
            end
            2: begin
              in_call <= line[7:0];
              in_type <= line[15:8];
              header_good <= header_good && line[63:16] == 0;
            end
            default: ;
          endcase
        end
        if (siNRC_Udp_Data_tlast) begin
          have_meta <= 0;
          in_line <= 0;
          header_good <= 1;
        end
      end
      if (begins) begin
        in_message <= 1;
        words <= in_size;
        got <= 0;
      end
      if (header_ends && in_type == DATA && in_size > 2 * LINES) begin
        $display("the message has %0d words, and this MPE can store %0d: it is lost", in_size, 2 * LINES);
        $fflush;
      end
      if (repeated) answer <= 1;
      if (stores) begin
        message[got[11:0]] <= line;
        got <= got + 1;
      end

      // A packet is complete.
      if (take && siNRC_Udp_Data_tlast) begin
        if (stores && got + 1 >= lines) begin
          in_message <= 0;
          send(S_ACK);
        end else if (answer) begin
          answer <= 0;
          send(S_ACK);
        end else if (control)
          case (state)
            W_REQUEST, W_DATA: if (in_type == SEND_REQUEST && in_call == SEND_INT) send(S_CLEAR);
            W_CLEAR: if (in_type == CLEAR_TO_SEND && in_call == RECV_INT) send(S_DATA);
            W_ACK: if (in_type == ACK && in_call == RECV_INT) begin
              if (sender) send(S_REQUEST);
              else wait_for(W_REQUEST);
            end
            default: ;
          endcase
      end else if (waiting && state != W_REQUEST && !take) begin
        timer <= timer + 1;
        if (timer >= timeout && !have_meta) begin
          in_message <= 0;
          send(state == W_DATA ? S_CLEAR : state == W_CLEAR ? S_REQUEST : S_DATA);
        end
      end

      // A packet is sent.
      if (sending) begin
        if (soROLE_Nrc_Udp_Meta_TVALID && soROLE_Nrc_Udp_Meta_TREADY) meta_due <= 0;
        if (soNRC_Udp_Data_tvalid && soNRC_Udp_Data_tready) begin
          out_line <= out_line + 1;
          out_at <= out_at + 1;
          if (soNRC_Udp_Data_tlast) begin
            out_at <= 0;
            meta_due <= 1;
          end
          if (out_end)
            case (state)
              S_CLEAR: wait_for(W_DATA);
              S_REQUEST: wait_for(W_CLEAR);
              S_DATA: wait_for(W_ACK);
              default:
              if (receiver) wait_for(W_REQUEST);
              else send(S_REQUEST);
            endcase
        end
      end
    end
  end
endmodule
