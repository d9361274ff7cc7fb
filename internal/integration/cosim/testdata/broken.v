// An echo role that, with argument +broken, breaks a rule of its streams from its first message on: rule N after a message of
// N lines.
module role (
    input  wire        clk,
    input  wire        rst,
    input  wire [31:0] rank,
    input  wire [31:0] size,
    output wire [71:0] soMPIif_tdata,
    output wire        soMPIif_tvalid,
    input  wire        soMPIif_tready,
    input  wire [7:0]  siMPIFeB_tdata,
    input  wire        siMPIFeB_tvalid,
    output wire        siMPIFeB_tready,
    output wire [63:0] soMPI_data_tdata,
    output wire [7:0]  soMPI_data_tkeep,
    output wire        soMPI_data_tlast,
    output wire        soMPI_data_tvalid,
    input  wire        soMPI_data_tready,
    input  wire [63:0] siMPI_data_tdata,
    input  wire [7:0]  siMPI_data_tkeep,
    input  wire        siMPI_data_tlast,
    input  wire        siMPI_data_tvalid,
    output wire        siMPI_data_tready
);
  wire [71:0] call_data;
  wire [63:0] out_data;
  wire [7:0] out_keep;
  wire call_valid, out_valid, out_last;
  reg [7:0] lines = 0, rule = 0;
  reg broken = 0;
  initial if ($test$plusargs("broken")) broken = 1;
  reg toggle = 0, call_refused = 0, out_refused = 0;

  assign soMPI_data_tvalid = out_valid && !(rule == 1 && out_refused) && !(rule == 5 && !soMPI_data_tready);
  assign soMPI_data_tdata  = out_data ^ {63'd0, rule == 2 && toggle};
  assign soMPI_data_tkeep  = out_keep ^ {8{rule == 3 && toggle}};
  assign soMPI_data_tlast  = out_last ^ (rule == 4 && toggle);
  assign soMPIif_tvalid    = call_valid && !(rule == 6 && call_refused) && !(rule == 8 && !soMPIif_tready);
  assign soMPIif_tdata     = call_data ^ {63'd0, rule == 7 && toggle, 8'd0};

  always @(posedge clk) begin
    toggle <= !toggle;
    call_refused <= soMPIif_tvalid && !soMPIif_tready;
    out_refused <= soMPI_data_tvalid && !soMPI_data_tready;
    if (siMPI_data_tvalid && siMPI_data_tready) begin
      lines <= siMPI_data_tlast ? 0 : lines + 1;
      if (siMPI_data_tlast && broken) rule <= lines + 1;
    end
  end

  echo sound (
      .clk(clk), .rst(rst), .rank(rank), .size(size),
      .soMPIif_tdata(call_data), .soMPIif_tvalid(call_valid), .soMPIif_tready(soMPIif_tready),
      .siMPIFeB_tdata(siMPIFeB_tdata), .siMPIFeB_tvalid(siMPIFeB_tvalid), .siMPIFeB_tready(siMPIFeB_tready),
      .soMPI_data_tdata(out_data), .soMPI_data_tkeep(out_keep), .soMPI_data_tlast(out_last),
      .soMPI_data_tvalid(out_valid), .soMPI_data_tready(soMPI_data_tready),
      .siMPI_data_tdata(siMPI_data_tdata), .siMPI_data_tkeep(siMPI_data_tkeep), .siMPI_data_tlast(siMPI_data_tlast),
      .siMPI_data_tvalid(siMPI_data_tvalid), .siMPI_data_tready(siMPI_data_tready)
  );
endmodule

