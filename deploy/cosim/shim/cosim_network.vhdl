-- The clock of a role in VHDL under GHDL that includes an MPE, and its interface to zrlmpid, which is the shell. Entity
-- role has those ports of Role_Themisto that are named here. For the ports of TCP, the Makefile removes the comment
-- marks of their lines, and sets TCP.
library ieee;
use ieee.std_logic_1164.all;

package zrlmpi_network is
  -- The arrays exchanged with ghdl.c, in its order. VHPIDIRECT passes arrays by reference.
  subtype role_bits is std_logic_vector(172 downto 0);
  subtype shell_bits is std_logic_vector(206 downto 0);
  subtype tcp_role_bits is std_logic_vector(172 downto 0);
  subtype tcp_shell_bits is std_logic_vector(140 downto 0);
  procedure open_network;
  attribute foreign of open_network : procedure is "VHPIDIRECT zrlmpi_network_open";
  procedure open_network_tcp;
  attribute foreign of open_network_tcp : procedure is "VHPIDIRECT zrlmpi_network_open_tcp";
  procedure cycle(role : in role_bits; tcp_role : in tcp_role_bits; shell : out shell_bits; tcp_shell : out tcp_shell_bits);
  attribute foreign of cycle : procedure is "VHPIDIRECT zrlmpi_ghdl_network_cycle";
end package;

package body zrlmpi_network is
  procedure open_network is
  begin
    assert false severity failure;
  end procedure;
  procedure open_network_tcp is
  begin
    assert false severity failure;
  end procedure;
  procedure cycle(role : in role_bits; tcp_role : in tcp_role_bits; shell : out shell_bits; tcp_shell : out tcp_shell_bits) is
  begin
    assert false severity failure;
  end procedure;
end package body;

library ieee;
use ieee.std_logic_1164.all;
use work.zrlmpi_network.all;

entity cosim is
end entity;

architecture bench of cosim is
  constant HALF_PERIOD : time := 3200 ps;  -- 156.25 MHz, like a deployed role
  constant HOLD : time := 100 ps;  -- the inputs change after all effects of the edge
  signal clk : std_logic := '0';
  -- Before the first edge only the reset is driven.
  signal shell : shell_bits := (205 => '1', others => '0');
  signal role : role_bits;
  constant TCP : boolean := false;
  signal tcp_shell : tcp_shell_bits := (others => '0');
  signal tcp_role : tcp_role_bits := (others => '0');
  signal enable : std_logic;
begin
  clock : process
    variable next_shell : shell_bits;
    variable next_tcp_shell : tcp_shell_bits;
  begin
    if TCP then
      open_network_tcp;
    else
      open_network;
    end if;
    loop
      wait for HALF_PERIOD;
      -- Sample the outputs of the role before the edge.
      cycle(role, tcp_role, next_shell, next_tcp_shell);
      clk <= '1';
      wait for HOLD;
      shell <= next_shell;
      tcp_shell <= next_tcp_shell;
      exit when next_shell(206) = '1';
      wait for HALF_PERIOD - HOLD;
      clk <= '0';
    end loop;
    std.env.finish;
  end process;

  enable <= not shell(205);

  dut : entity work.role
    port map (
      piSHL_156_25Clk => clk,
      piSHL_156_25Rst => shell(205),
      piMMIO_Ly7_Rst  => shell(205),
      piMMIO_Ly7_En   => enable,
      piFMC_ROLE_rank => shell(204 downto 173),
      piFMC_ROLE_size => shell(172 downto 141),
      --TCP soROLE_Nrc_Tcp_Meta_TREADY => tcp_shell(140),
      --TCP soNRC_Tcp_Data_tready      => tcp_shell(139),
      --TCP siNRC_Tcp_Data_tvalid      => tcp_shell(138),
      --TCP siNRC_Tcp_Data_tkeep       => tcp_shell(137 downto 130),
      --TCP siNRC_Tcp_Data_tlast       => tcp_shell(129),
      --TCP siNRC_Tcp_Data_tdata       => tcp_shell(128 downto 65),
      --TCP siNRC_Role_Tcp_Meta_TVALID => tcp_shell(64),
      --TCP siNRC_Role_Tcp_Meta_TDATA  => tcp_shell(63 downto 0),
      --TCP siNRC_Role_Tcp_Meta_TKEEP  => x"ff",
      --TCP siNRC_Role_Tcp_Meta_TLAST  => '1',
      --TCP soROLE_Nrc_Tcp_Meta_TVALID => tcp_role(172),
      --TCP soROLE_Nrc_Tcp_Meta_TDATA  => tcp_role(171 downto 108),
      --TCP soNRC_Tcp_Data_tvalid      => tcp_role(107),
      --TCP soNRC_Tcp_Data_tkeep       => tcp_role(106 downto 99),
      --TCP soNRC_Tcp_Data_tlast       => tcp_role(98),
      --TCP soNRC_Tcp_Data_tdata       => tcp_role(97 downto 34),
      --TCP siNRC_Tcp_Data_tready      => tcp_role(33),
      --TCP siNRC_Role_Tcp_Meta_TREADY => tcp_role(32),
      --TCP poROL_Nrc_Tcp_Rx_ports     => tcp_role(31 downto 0),
      soROLE_Nrc_Udp_Meta_TREADY => shell(140),
      soNRC_Udp_Data_tready      => shell(139),
      siNRC_Udp_Data_tvalid      => shell(138),
      siNRC_Udp_Data_tkeep       => shell(137 downto 130),
      siNRC_Udp_Data_tlast       => shell(129),
      siNRC_Udp_Data_tdata       => shell(128 downto 65),
      siNRC_Role_Udp_Meta_TVALID => shell(64),
      siNRC_Role_Udp_Meta_TDATA  => shell(63 downto 0),
      siNRC_Role_Udp_Meta_TKEEP  => x"ff",
      siNRC_Role_Udp_Meta_TLAST  => '1',
      soROLE_Nrc_Udp_Meta_TVALID => role(172),
      soROLE_Nrc_Udp_Meta_TDATA  => role(171 downto 108),
      soNRC_Udp_Data_tvalid      => role(107),
      soNRC_Udp_Data_tkeep       => role(106 downto 99),
      soNRC_Udp_Data_tlast       => role(98),
      soNRC_Udp_Data_tdata       => role(97 downto 34),
      siNRC_Udp_Data_tready      => role(33),
      siNRC_Role_Udp_Meta_TREADY => role(32),
      poROL_Nrc_Udp_Rx_ports     => role(31 downto 0)
    );
end architecture;
