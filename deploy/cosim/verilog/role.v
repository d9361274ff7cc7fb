// An echo role: it receives a message from rank 0 and sends it back. It has the interface of upstream's templates, as
// AXI4-Streams; docs/cosim.md has its rules.
module role (
    input  wire        clk,
    input  wire        rst,            // active high
    input  wire [31:0] rank,
    input  wire [31:0] size,
    // Calls: {rank, count in words, mpi_call}.
    output reg  [71:0] soMPIif_tdata,
    output reg         soMPIif_tvalid,
    input  wire        soMPIif_tready,
    // The end of a call: 1 OK, 2 FAIL (send the lines again).
    input  wire [7:0]  siMPIFeB_tdata,
    input  wire        siMPIFeB_tvalid,
    output wire        siMPIFeB_tready,
    // Lines of two words to be sent.
    output reg  [63:0] soMPI_data_tdata,
    output reg  [7:0]  soMPI_data_tkeep,
    output reg         soMPI_data_tlast,
    output reg         soMPI_data_tvalid,
    input  wire        soMPI_data_tready,
    // Received lines of two words.
    input  wire [63:0] siMPI_data_tdata,
    input  wire [7:0]  siMPI_data_tkeep,
    input  wire        siMPI_data_tlast,
    input  wire        siMPI_data_tvalid,
    output wire        siMPI_data_tready
);
  localparam LINES = 4096;  // the longest message has 8192 words
  localparam RECV_INT = 8'd1, SEND_INT = 8'd0, FLOAT = 8'd2;
  localparam FEEDBACK_OK = 8'd1;
  localparam CALL_RECV = 0, RECV = 1, RECV_END = 2, CALL_SEND = 3, SEND = 4, SEND_END = 5;

  // Argument +float of the program: FLOAT instead of INT.
  reg [7:0] datatype = 0;
  initial if ($test$plusargs("float")) datatype = FLOAT;

  reg [63:0] message[0:LINES-1];
  reg [2:0] state;
  reg [12:0] line, lines;
  reg [31:0] words;

  assign siMPI_data_tready = state == RECV;
  assign siMPIFeB_tready   = state == RECV_END || state == SEND_END;

  wire taken = soMPI_data_tvalid && soMPI_data_tready;

  always @(posedge clk) begin
    if (rst) begin
      state <= CALL_RECV;
      soMPIif_tvalid <= 0;
      soMPI_data_tvalid <= 0;
      line <= 0;
    end else
      case (state)
        CALL_RECV, CALL_SEND:
        if (!soMPIif_tvalid) begin
          soMPIif_tvalid <= 1;
          soMPIif_tdata <= state == CALL_RECV ? {32'd0, 32'd2 * LINES, RECV_INT + datatype} : {32'd0, words, SEND_INT + datatype};
        end else if (soMPIif_tready) begin
          soMPIif_tvalid <= 0;
          line <= 0;
          state <= state == CALL_RECV ? RECV : SEND;
        end
        RECV:
        if (siMPI_data_tvalid) begin
          message[line[11:0]] <= siMPI_data_tdata;
          line <= line + 1;
          if (siMPI_data_tlast) begin
            lines <= line + 1;
            words <= 2 * line + (siMPI_data_tkeep[7] ? 2 : siMPI_data_tkeep[3] ? 1 : 0);
            state <= RECV_END;
          end
        end
        RECV_END: if (siMPIFeB_tvalid) state <= CALL_SEND;
        SEND: begin
          if (taken && soMPI_data_tlast) begin
            soMPI_data_tvalid <= 0;
            state <= SEND_END;
          end else if (!soMPI_data_tvalid || taken) begin
            soMPI_data_tvalid <= 1;
            soMPI_data_tdata <= message[line[11:0]];
            soMPI_data_tkeep <= 8'hff;
            soMPI_data_tlast <= line == lines - 1;
            line <= line + 1;
          end
        end
        default:
        if (siMPIFeB_tvalid) begin
          line  <= 0;
          state <= siMPIFeB_tdata == FEEDBACK_OK ? CALL_RECV : SEND;
        end
      endcase
  end
endmodule
