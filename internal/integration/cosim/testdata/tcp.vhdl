-- A role that sends each chunk of a TCP connection back over it, while it arrives. It opens port 2720.
library ieee;
use ieee.std_logic_1164.all;

entity role is
  port (
    piSHL_156_25Clk : in std_logic;
    piSHL_156_25Rst : in std_logic;
    piMMIO_Ly7_Rst  : in std_logic;
    piMMIO_Ly7_En   : in std_logic;
    piFMC_ROLE_rank : in std_logic_vector(31 downto 0);
    piFMC_ROLE_size : in std_logic_vector(31 downto 0);
    siNRC_Udp_Data_tdata  : in  std_logic_vector(63 downto 0);
    siNRC_Udp_Data_tkeep  : in  std_logic_vector(7 downto 0);
    siNRC_Udp_Data_tlast  : in  std_logic;
    siNRC_Udp_Data_tvalid : in  std_logic;
    siNRC_Udp_Data_tready : out std_logic;
    siNRC_Role_Udp_Meta_TDATA  : in  std_logic_vector(63 downto 0);
    siNRC_Role_Udp_Meta_TKEEP  : in  std_logic_vector(7 downto 0);
    siNRC_Role_Udp_Meta_TLAST  : in  std_logic;
    siNRC_Role_Udp_Meta_TVALID : in  std_logic;
    siNRC_Role_Udp_Meta_TREADY : out std_logic;
    soNRC_Udp_Data_tdata  : out std_logic_vector(63 downto 0);
    soNRC_Udp_Data_tkeep  : out std_logic_vector(7 downto 0);
    soNRC_Udp_Data_tlast  : out std_logic;
    soNRC_Udp_Data_tvalid : out std_logic;
    soNRC_Udp_Data_tready : in  std_logic;
    soROLE_Nrc_Udp_Meta_TDATA  : out std_logic_vector(63 downto 0);
    soROLE_Nrc_Udp_Meta_TKEEP  : out std_logic_vector(7 downto 0);
    soROLE_Nrc_Udp_Meta_TLAST  : out std_logic;
    soROLE_Nrc_Udp_Meta_TVALID : out std_logic;
    soROLE_Nrc_Udp_Meta_TREADY : in  std_logic;
    poROL_Nrc_Udp_Rx_ports : out std_logic_vector(31 downto 0);
    siNRC_Tcp_Data_tdata  : in  std_logic_vector(63 downto 0);
    siNRC_Tcp_Data_tkeep  : in  std_logic_vector(7 downto 0);
    siNRC_Tcp_Data_tlast  : in  std_logic;
    siNRC_Tcp_Data_tvalid : in  std_logic;
    siNRC_Tcp_Data_tready : out std_logic;
    siNRC_Role_Tcp_Meta_TDATA  : in  std_logic_vector(63 downto 0);
    siNRC_Role_Tcp_Meta_TKEEP  : in  std_logic_vector(7 downto 0);
    siNRC_Role_Tcp_Meta_TLAST  : in  std_logic;
    siNRC_Role_Tcp_Meta_TVALID : in  std_logic;
    siNRC_Role_Tcp_Meta_TREADY : out std_logic;
    soNRC_Tcp_Data_tdata  : out std_logic_vector(63 downto 0);
    soNRC_Tcp_Data_tkeep  : out std_logic_vector(7 downto 0);
    soNRC_Tcp_Data_tlast  : out std_logic;
    soNRC_Tcp_Data_tvalid : out std_logic;
    soNRC_Tcp_Data_tready : in  std_logic;
    soROLE_Nrc_Tcp_Meta_TDATA  : out std_logic_vector(63 downto 0);
    soROLE_Nrc_Tcp_Meta_TKEEP  : out std_logic_vector(7 downto 0);
    soROLE_Nrc_Tcp_Meta_TLAST  : out std_logic;
    soROLE_Nrc_Tcp_Meta_TVALID : out std_logic;
    soROLE_Nrc_Tcp_Meta_TREADY : in  std_logic;
    poROL_Nrc_Tcp_Rx_ports : out std_logic_vector(31 downto 0)
  );
end entity;

architecture rtl of role is
  type phase is (idle, meta, pass);
  signal state : phase;
  signal from : std_logic_vector(63 downto 0);
begin
  siNRC_Udp_Data_tready      <= '0';
  siNRC_Role_Udp_Meta_TREADY <= '0';
  soNRC_Udp_Data_tdata       <= (others => '0');
  soNRC_Udp_Data_tkeep       <= (others => '0');
  soNRC_Udp_Data_tlast       <= '0';
  soNRC_Udp_Data_tvalid      <= '0';
  soROLE_Nrc_Udp_Meta_TDATA  <= (others => '0');
  soROLE_Nrc_Udp_Meta_TKEEP  <= (others => '0');
  soROLE_Nrc_Udp_Meta_TLAST  <= '0';
  soROLE_Nrc_Udp_Meta_TVALID <= '0';
  poROL_Nrc_Udp_Rx_ports     <= (others => '0');

  poROL_Nrc_Tcp_Rx_ports     <= (2 => not piSHL_156_25Rst, others => '0');
  siNRC_Role_Tcp_Meta_TREADY <= '1' when state = idle else '0';
  soROLE_Nrc_Tcp_Meta_TVALID <= '1' when state = meta else '0';
  soROLE_Nrc_Tcp_Meta_TDATA  <= x"0000" & from(23 downto 8) & from(7 downto 0) & from(47 downto 32) & from(31 downto 24);
  soROLE_Nrc_Tcp_Meta_TKEEP  <= x"ff";
  soROLE_Nrc_Tcp_Meta_TLAST  <= '1';
  siNRC_Tcp_Data_tready <= soNRC_Tcp_Data_tready when state = pass else '0';
  soNRC_Tcp_Data_tvalid <= siNRC_Tcp_Data_tvalid when state = pass else '0';
  soNRC_Tcp_Data_tdata  <= siNRC_Tcp_Data_tdata;
  soNRC_Tcp_Data_tkeep  <= siNRC_Tcp_Data_tkeep;
  soNRC_Tcp_Data_tlast  <= siNRC_Tcp_Data_tlast;

  process (piSHL_156_25Clk)
  begin
    if rising_edge(piSHL_156_25Clk) then
      if piSHL_156_25Rst = '1' then
        state <= idle;
      else
        case state is
          when idle =>
            if siNRC_Role_Tcp_Meta_TVALID = '1' then
              from <= siNRC_Role_Tcp_Meta_TDATA;
              state <= meta;
            end if;
          when meta =>
            if soROLE_Nrc_Tcp_Meta_TREADY = '1' then
              state <= pass;
            end if;
          when pass =>
            if siNRC_Tcp_Data_tvalid = '1' and soNRC_Tcp_Data_tready = '1' and siNRC_Tcp_Data_tlast = '1' then
              state <= idle;
            end if;
        end case;
      end if;
    end if;
  end process;
end architecture;
