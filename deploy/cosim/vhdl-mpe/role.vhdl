-- An echo role with a minimal MPE: it receives a message of INT from rank 0 and sends it back, packet by packet:
-- SEND_REQUEST, CLEAR_TO_SEND, DATA, ACK. It has the ports of the role's interface to the cloudFPGA shell Themisto.
-- docs/cosim.md has the rules of the ports, docs/ZRLMPI_protocol.md the rules of the packets.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

entity role is
  port (
    piSHL_156_25Clk : in std_logic;
    piSHL_156_25Rst : in std_logic;
    piMMIO_Ly7_Rst  : in std_logic;
    piMMIO_Ly7_En   : in std_logic;
    piFMC_ROLE_rank : in std_logic_vector(31 downto 0);
    piFMC_ROLE_size : in std_logic_vector(31 downto 0);
    -- Received datagrams.
    siNRC_Udp_Data_tdata       : in  std_logic_vector(63 downto 0);
    siNRC_Udp_Data_tkeep       : in  std_logic_vector(7 downto 0);
    siNRC_Udp_Data_tlast       : in  std_logic;
    siNRC_Udp_Data_tvalid      : in  std_logic;
    siNRC_Udp_Data_tready      : out std_logic;
    siNRC_Role_Udp_Meta_TDATA  : in  std_logic_vector(63 downto 0);
    siNRC_Role_Udp_Meta_TKEEP  : in  std_logic_vector(7 downto 0);
    siNRC_Role_Udp_Meta_TLAST  : in  std_logic;
    siNRC_Role_Udp_Meta_TVALID : in  std_logic;
    siNRC_Role_Udp_Meta_TREADY : out std_logic;
    -- Datagrams to be sent.
    soNRC_Udp_Data_tdata       : out std_logic_vector(63 downto 0);
    soNRC_Udp_Data_tkeep       : out std_logic_vector(7 downto 0);
    soNRC_Udp_Data_tlast       : out std_logic;
    soNRC_Udp_Data_tvalid      : out std_logic;
    soNRC_Udp_Data_tready      : in  std_logic;
    soROLE_Nrc_Udp_Meta_TDATA  : out std_logic_vector(63 downto 0);
    soROLE_Nrc_Udp_Meta_TKEEP  : out std_logic_vector(7 downto 0);
    soROLE_Nrc_Udp_Meta_TLAST  : out std_logic;
    soROLE_Nrc_Udp_Meta_TVALID : out std_logic;
    soROLE_Nrc_Udp_Meta_TREADY : in  std_logic;
    -- Bit 0 opens port 2718.
    poROL_Nrc_Udp_Rx_ports : out std_logic_vector(31 downto 0)
  );
end entity;

architecture echo of role is
  constant LINES : natural := 4096;         -- the longest message has 8192 words
  constant DATAGRAM_LINES : natural := 177; -- the longest datagram has 1416 bytes
  constant HEADER_LINES : natural := 4;
  constant RETRANSMIT : natural := 15_625_000; -- 100 ms
  constant PEER : std_logic_vector(7 downto 0) := x"00";
  constant PORT_2718 : std_logic_vector(15 downto 0) := x"0a9e";
  constant MARK : std_logic_vector(31 downto 0) := x"96969696";
  subtype byte is std_logic_vector(7 downto 0);
  constant SEND_INT : byte := x"00";  -- calls
  constant RECV_INT : byte := x"01";
  constant SEND_REQUEST : byte := x"01";  -- types of packets
  constant CLEAR_TO_SEND : byte := x"02";
  constant DATA : byte := x"03";
  constant ACK : byte := x"04";

  type memory is array (0 to LINES - 1) of std_logic_vector(63 downto 0);
  -- States that wait for a packet, and states that send one.
  type phase is (w_request, w_data, w_clear, w_ack, s_clear, s_ack, s_request, s_data);

  signal message : memory;
  signal state : phase := w_request;
  signal sending, waiting : std_logic;
  signal words : natural range 0 to 2 * LINES;
  signal timer : natural range 0 to RETRANSMIT;

  -- The packet being sent: a header, followed by the lines of the message for DATA.
  signal out_line : natural range 0 to LINES + HEADER_LINES;  -- line of the packet
  signal out_at : natural range 0 to DATAGRAM_LINES;          -- line of the datagram
  signal meta_due : std_logic;
  signal out_valid, out_end, out_last : std_logic;
  signal out_data, out_message : std_logic_vector(63 downto 0);
  signal out_call, out_type : byte;
  signal out_size : natural range 0 to 2 * LINES;
  signal out_lines : natural range 0 to LINES + HEADER_LINES;

  -- The datagram being received: its metadata first.
  signal have_meta : std_logic;
  signal from : byte;
  signal in_line : natural range 0 to HEADER_LINES;  -- line of the header
  signal header_good : boolean;                      -- its lines so far
  signal in_call, in_type : byte;
  signal in_size : unsigned(31 downto 0);
  signal in_message : boolean;  -- receiving the rest of a message after DATA
  signal got : natural range 0 to LINES;
begin
  sending <= '1' when state = s_clear or state = s_ack or state = s_request or state = s_data else '0';
  waiting <= not sending;
  poROL_Nrc_Udp_Rx_ports <= (0 => not piSHL_156_25Rst, others => '0');

  out_call <= SEND_INT when state = s_request or state = s_data else RECV_INT;
  out_type <= SEND_REQUEST when state = s_request else CLEAR_TO_SEND when state = s_clear else DATA when state = s_data else ACK;
  out_size <= words when state = s_data else 0;
  out_lines <= HEADER_LINES + (words + 1) / 2 when state = s_data else HEADER_LINES;
  out_end <= '1' when out_line = out_lines - 1 else '0';
  out_last <= '1' when out_end = '1' or out_at = DATAGRAM_LINES - 1 else '0';
  out_message <= message((out_line + LINES - HEADER_LINES) mod LINES);
  with out_line select out_data <=
    x"000000" & PEER & MARK when 0,
    std_logic_vector(to_unsigned(out_size, 32)) & piFMC_ROLE_rank when 1,
    x"000000000000" & out_type & out_call when 2,
    MARK & x"00000000" when 3,
    out_message when others;
  out_valid <= sending and not meta_due;
  soNRC_Udp_Data_tvalid <= out_valid;
  soNRC_Udp_Data_tlast <= out_last;
  soNRC_Udp_Data_tkeep <= x"ff";
  -- An odd number of words is padded with 0.
  soNRC_Udp_Data_tdata(63 downto 32) <= x"00000000" when out_end = '1' and out_size mod 2 = 1 else out_data(63 downto 32);
  soNRC_Udp_Data_tdata(31 downto 0) <= out_data(31 downto 0);
  soROLE_Nrc_Udp_Meta_TVALID <= sending and meta_due;
  soROLE_Nrc_Udp_Meta_TDATA <= x"0000" & PORT_2718 & piFMC_ROLE_rank(7 downto 0) & PORT_2718 & PEER;  -- len 0: tlast ends the datagram
  soROLE_Nrc_Udp_Meta_TKEEP <= x"ff";
  soROLE_Nrc_Udp_Meta_TLAST <= '1';

  siNRC_Role_Udp_Meta_TREADY <= waiting and not have_meta;
  siNRC_Udp_Data_tready <= waiting and have_meta;

  process (piSHL_156_25Clk)
    procedure send(packet : phase) is
    begin
      state    <= packet;
      out_line <= 0;
      out_at   <= 0;
      meta_due <= '1';
    end procedure;
    procedure wait_for(packet : phase) is
    begin
      state <= packet;
      timer <= 0;
    end procedure;
    variable line : std_logic_vector(63 downto 0);
    variable take, header_ends : boolean;
  begin
    if rising_edge(piSHL_156_25Clk) then
      line := siNRC_Udp_Data_tdata;
      take := siNRC_Udp_Data_tvalid = '1' and waiting = '1' and have_meta = '1';
      header_ends := take and not in_message and in_line = HEADER_LINES - 1 and header_good and line = MARK & x"00000000";
      if piSHL_156_25Rst = '1' or piMMIO_Ly7_Rst = '1' then
        wait_for(w_request);
        words       <= 0;
        meta_due    <= '0';
        have_meta   <= '0';
        in_line     <= 0;
        header_good <= true;
        in_message  <= false;
        out_line    <= 0;
        out_at      <= 0;
      else
        -- A datagram arrives.
        if siNRC_Role_Udp_Meta_TVALID = '1' and waiting = '1' and have_meta = '0' then
          have_meta <= '1';
          from      <= siNRC_Role_Udp_Meta_TDATA(31 downto 24);
        end if;
        if take then
          timer <= 0;
          if in_message then
            message(got) <= line;
            got          <= got + 1;
          elsif in_line < HEADER_LINES then
            in_line <= in_line + 1;
            case in_line is
              when 0 => header_good <= from = PEER and line = piFMC_ROLE_rank & MARK;
              when 1 =>
                in_size     <= unsigned(line(63 downto 32));
                header_good <= header_good and line(31 downto 0) = x"000000" & from;
              when 2 =>
                in_call     <= line(7 downto 0);
                in_type     <= line(15 downto 8);
                header_good <= header_good and line(63 downto 16) = x"000000000000";
              when others => null;
            end case;
          end if;
          if header_ends and siNRC_Udp_Data_tlast = '0' and in_type = DATA and in_call = SEND_INT and state = w_data
            and in_size > 0 and in_size <= 2 * LINES then
            in_message <= true;
            words      <= to_integer(in_size);
            got        <= 0;
          end if;
          if header_ends and in_type = DATA and in_size > 2 * LINES then
            report "the message has more than " & integer'image(2 * LINES) & " words, the capacity of this MPE: it is lost" severity warning;
          end if;
          if siNRC_Udp_Data_tlast = '1' then
            have_meta   <= '0';
            in_line     <= 0;
            header_good <= true;
            if in_message then
              if got + 1 >= (words + 1) / 2 then
                in_message <= false;
                send(s_ack);
              end if;
            elsif header_ends and in_size = 0 then
              case state is
                when w_request | w_data =>
                  if in_type = SEND_REQUEST and in_call = SEND_INT then
                    send(s_clear);
                  end if;
                when w_clear =>
                  if in_type = CLEAR_TO_SEND and in_call = RECV_INT then
                    send(s_data);
                  end if;
                when w_ack =>
                  if in_type = ACK and in_call = RECV_INT then
                    wait_for(w_request);
                  end if;
                when others => null;
              end case;
            end if;
          end if;
        elsif waiting = '1' and state /= w_request and have_meta = '0' then
          if timer < RETRANSMIT then
            timer <= timer + 1;
          else
            in_message <= false;
            case state is
              when w_data => send(s_clear);
              when w_clear => send(s_request);
              when others => send(s_data);
            end case;
          end if;
        end if;

        -- A packet is sent.
        if sending = '1' and meta_due = '1' and soROLE_Nrc_Udp_Meta_TREADY = '1' then
          meta_due <= '0';
        end if;
        if out_valid = '1' and soNRC_Udp_Data_tready = '1' then
          out_line <= out_line + 1;
          out_at   <= out_at + 1;
          if out_last = '1' then
            out_at   <= 0;
            meta_due <= '1';
          end if;
          if out_end = '1' then
            case state is
              when s_clear => wait_for(w_data);
              when s_request => wait_for(w_clear);
              when s_data => wait_for(w_ack);
              when others => send(s_request);
            end case;
          end if;
        end if;
      end if;
    end if;
  end process;
end architecture;
