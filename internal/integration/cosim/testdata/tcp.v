// A role that sends each chunk of a TCP connection back over it, while it arrives. It opens port 2720. With +first it sends 8 bytes to
// port 4000 of rank 0 after the reset; with +len metadata has the length, and no line tlast; with +hole a line has one.
module role (
    input  wire        piSHL_156_25Clk,
    input  wire        piSHL_156_25Rst,
    input  wire        piMMIO_Ly7_Rst,
    input  wire        piMMIO_Ly7_En,
    input  wire [31:0] piFMC_ROLE_rank,
    input  wire [31:0] piFMC_ROLE_size,
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
    output wire [31:0] poROL_Nrc_Udp_Rx_ports,
    input  wire [63:0] siNRC_Tcp_Data_tdata,
    input  wire [7:0]  siNRC_Tcp_Data_tkeep,
    input  wire        siNRC_Tcp_Data_tlast,
    input  wire        siNRC_Tcp_Data_tvalid,
    output wire        siNRC_Tcp_Data_tready,
    input  wire [63:0] siNRC_Role_Tcp_Meta_TDATA,
    input  wire [7:0]  siNRC_Role_Tcp_Meta_TKEEP,
    input  wire        siNRC_Role_Tcp_Meta_TLAST,
    input  wire        siNRC_Role_Tcp_Meta_TVALID,
    output wire        siNRC_Role_Tcp_Meta_TREADY,
    output wire [63:0] soNRC_Tcp_Data_tdata,
    output wire [7:0]  soNRC_Tcp_Data_tkeep,
    output wire        soNRC_Tcp_Data_tlast,
    output wire        soNRC_Tcp_Data_tvalid,
    input  wire        soNRC_Tcp_Data_tready,
    output wire [63:0] soROLE_Nrc_Tcp_Meta_TDATA,
    output wire [7:0]  soROLE_Nrc_Tcp_Meta_TKEEP,
    output wire        soROLE_Nrc_Tcp_Meta_TLAST,
    output wire        soROLE_Nrc_Tcp_Meta_TVALID,
    input  wire        soROLE_Nrc_Tcp_Meta_TREADY,
    output wire [31:0] poROL_Nrc_Tcp_Rx_ports
);
  // Datagrams are sent back as well.
  assign siNRC_Udp_Data_tready = soNRC_Udp_Data_tready;
  assign soNRC_Udp_Data_tdata = siNRC_Udp_Data_tdata;
  assign soNRC_Udp_Data_tkeep = siNRC_Udp_Data_tkeep;
  assign soNRC_Udp_Data_tlast = siNRC_Udp_Data_tlast;
  assign soNRC_Udp_Data_tvalid = siNRC_Udp_Data_tvalid;
  assign siNRC_Role_Udp_Meta_TREADY = soROLE_Nrc_Udp_Meta_TREADY;
  assign soROLE_Nrc_Udp_Meta_TVALID = siNRC_Role_Udp_Meta_TVALID;
  assign soROLE_Nrc_Udp_Meta_TDATA = {16'd0, siNRC_Role_Udp_Meta_TDATA[23:8], siNRC_Role_Udp_Meta_TDATA[7:0],
      siNRC_Role_Udp_Meta_TDATA[47:32], siNRC_Role_Udp_Meta_TDATA[31:24]};
  assign soROLE_Nrc_Udp_Meta_TKEEP = 8'hff;
  assign soROLE_Nrc_Udp_Meta_TLAST = 1;
  assign poROL_Nrc_Udp_Rx_ports = piSHL_156_25Rst ? 0 : 1;

  reg first = 0, with_len = 0, hole = 0;
  initial begin
    if ($test$plusargs("first")) first = 1;
    if ($test$plusargs("len")) with_len = 1;
    if ($test$plusargs("hole")) hole = 1;
  end

  localparam OWN_META = 0, OWN_DATA = 1, IDLE = 2, META = 3, PASS = 4;
  reg [2:0] state;
  reg [63:0] from;
  assign poROL_Nrc_Tcp_Rx_ports = piSHL_156_25Rst ? 0 : 4;
  assign siNRC_Role_Tcp_Meta_TREADY = state == IDLE;
  assign soROLE_Nrc_Tcp_Meta_TVALID = state == META || state == OWN_META;
  assign soROLE_Nrc_Tcp_Meta_TDATA = state == OWN_META ? {16'd0, 16'd0, piFMC_ROLE_rank[7:0], 16'd4000, 8'd0}
      : {with_len ? from[63:48] : 16'd0, from[23:8], from[7:0], from[47:32], from[31:24]};
  assign soROLE_Nrc_Tcp_Meta_TKEEP = 8'hff;
  assign soROLE_Nrc_Tcp_Meta_TLAST = 1;
  assign siNRC_Tcp_Data_tready = state == PASS && soNRC_Tcp_Data_tready;
  assign soNRC_Tcp_Data_tvalid = state == OWN_DATA || state == PASS && siNRC_Tcp_Data_tvalid;
  assign soNRC_Tcp_Data_tdata = state == OWN_DATA ? "enotsrif" : siNRC_Tcp_Data_tdata;
  assign soNRC_Tcp_Data_tkeep = hole ? 8'hf7 : state == OWN_DATA ? 8'hff : siNRC_Tcp_Data_tkeep;
  assign soNRC_Tcp_Data_tlast = state == OWN_DATA || siNRC_Tcp_Data_tlast && !with_len;

  always @(posedge piSHL_156_25Clk)
    if (piSHL_156_25Rst) state <= first ? OWN_META : IDLE;
    else
      case (state)
        OWN_META: if (soROLE_Nrc_Tcp_Meta_TREADY) state <= OWN_DATA;
        OWN_DATA: if (soNRC_Tcp_Data_tready) state <= IDLE;
        IDLE:
        if (siNRC_Role_Tcp_Meta_TVALID) begin
          from <= siNRC_Role_Tcp_Meta_TDATA;
          state <= META;
        end
        META: if (soROLE_Nrc_Tcp_Meta_TREADY) state <= PASS;
        default: if (siNRC_Tcp_Data_tvalid && soNRC_Tcp_Data_tready && siNRC_Tcp_Data_tlast) state <= IDLE;
      endcase
endmodule
