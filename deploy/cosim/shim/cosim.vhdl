-- The clock of a role in VHDL under GHDL, and its interface to zrlmpid.
library ieee;
use ieee.std_logic_1164.all;

package zrlmpi_cosim is
  -- The arrays exchanged with ghdl.c, in its order. VHPIDIRECT passes arrays by reference.
  subtype role_bits is std_logic_vector(148 downto 0);
  subtype engine_bits is std_logic_vector(150 downto 0);
  procedure open_cosim;
  attribute foreign of open_cosim : procedure is "VHPIDIRECT zrlmpi_cosim_open";
  procedure cycle(role : in role_bits; engine : out engine_bits);
  attribute foreign of cycle : procedure is "VHPIDIRECT zrlmpi_ghdl_cycle";
end package;

package body zrlmpi_cosim is
  procedure open_cosim is
  begin
    assert false severity failure;
  end procedure;
  procedure cycle(role : in role_bits; engine : out engine_bits) is
  begin
    assert false severity failure;
  end procedure;
end package body;

library ieee;
use ieee.std_logic_1164.all;
use work.zrlmpi_cosim.all;

entity cosim is
end entity;

architecture bench of cosim is
  constant HALF_PERIOD : time := 3200 ps;  -- 156.25 MHz, like a deployed role
  constant HOLD : time := 100 ps;  -- the inputs change after all effects of the edge
  signal clk : std_logic := '0';
  -- Before the first edge only the reset is driven.
  signal engine : engine_bits := (149 => '1', others => '0');
  signal role : role_bits;
begin
  clock : process
    variable next_engine : engine_bits;
  begin
    open_cosim;
    loop
      wait for HALF_PERIOD;
      -- Sample the outputs of the role before the edge.
      cycle(role, next_engine);
      clk <= '1';
      wait for HOLD;
      engine <= next_engine;
      exit when next_engine(150) = '1';
      wait for HALF_PERIOD - HOLD;
      clk <= '0';
    end loop;
    std.env.finish;
  end process;

  dut : entity work.role
    port map (
      clk  => clk,
      rst  => engine(149),
      rank => engine(148 downto 117),
      size => engine(116 downto 85),
      soMPIif_tready    => engine(84),
      soMPI_data_tready => engine(83),
      siMPI_data_tvalid => engine(82),
      siMPI_data_tkeep  => engine(81 downto 74),
      siMPI_data_tlast  => engine(73),
      siMPI_data_tdata  => engine(72 downto 9),
      siMPIFeB_tvalid   => engine(8),
      siMPIFeB_tdata    => engine(7 downto 0),
      soMPIif_tvalid    => role(148),
      soMPIif_tdata     => role(147 downto 76),
      soMPI_data_tvalid => role(75),
      soMPI_data_tkeep  => role(74 downto 67),
      soMPI_data_tlast  => role(66),
      soMPI_data_tdata  => role(65 downto 2),
      siMPI_data_tready => role(1),
      siMPIFeB_tready   => role(0)
    );
end architecture;
