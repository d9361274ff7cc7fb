-- An echo role: it receives a message from rank 0 and sends it back. It has the interface of upstream's templates, as
-- AXI4-Streams; docs/cosim.md has its rules.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

entity role is
  port (
    clk  : in std_logic;
    rst  : in std_logic;  -- active high
    rank : in std_logic_vector(31 downto 0);
    size : in std_logic_vector(31 downto 0);
    -- Calls: rank, count in words, mpi_call.
    soMPIif_tdata  : out std_logic_vector(71 downto 0);
    soMPIif_tvalid : out std_logic;
    soMPIif_tready : in  std_logic;
    -- The end of a call: 1 OK, 2 FAIL (send the lines again).
    siMPIFeB_tdata  : in  std_logic_vector(7 downto 0);
    siMPIFeB_tvalid : in  std_logic;
    siMPIFeB_tready : out std_logic;
    -- Lines of two words to be sent.
    soMPI_data_tdata  : out std_logic_vector(63 downto 0);
    soMPI_data_tkeep  : out std_logic_vector(7 downto 0);
    soMPI_data_tlast  : out std_logic;
    soMPI_data_tvalid : out std_logic;
    soMPI_data_tready : in  std_logic;
    -- Received lines of two words.
    siMPI_data_tdata  : in  std_logic_vector(63 downto 0);
    siMPI_data_tkeep  : in  std_logic_vector(7 downto 0);
    siMPI_data_tlast  : in  std_logic;
    siMPI_data_tvalid : in  std_logic;
    siMPI_data_tready : out std_logic
  );
end entity;

architecture echo of role is
  constant DATATYPE : natural := 0;  -- 0: INT, 2: FLOAT
  constant LINES : natural := 4096;  -- the longest message has 8192 words
  constant FEEDBACK_OK : std_logic_vector(7 downto 0) := x"01";

  type memory is array (0 to LINES - 1) of std_logic_vector(63 downto 0);
  type phase is (call_recv, receive, recv_end, call_send, transmit, send_end);

  signal message : memory;
  signal state : phase;
  signal line, last_line : natural range 0 to LINES;
  signal words : natural range 0 to 2 * LINES;
  signal call_valid, out_valid, out_last : std_logic;

  function call(count, mpi_call : natural) return std_logic_vector is
  begin
    return std_logic_vector(to_unsigned(0, 32)) & std_logic_vector(to_unsigned(count, 32)) & std_logic_vector(to_unsigned(mpi_call, 8));
  end function;
begin
  soMPIif_tvalid    <= call_valid;
  soMPI_data_tvalid <= out_valid;
  soMPI_data_tlast  <= out_last;
  siMPI_data_tready <= '1' when state = receive else '0';
  siMPIFeB_tready   <= '1' when state = recv_end or state = send_end else '0';

  process (clk)
  begin
    if rising_edge(clk) then
      if rst = '1' then
        state      <= call_recv;
        call_valid <= '0';
        out_valid  <= '0';
        line       <= 0;
      else
        case state is
          when call_recv | call_send =>
            if call_valid = '0' then
              call_valid <= '1';
              if state = call_recv then
                soMPIif_tdata <= call(2 * LINES, 1 + DATATYPE);
              else
                soMPIif_tdata <= call(words, DATATYPE);
              end if;
            elsif soMPIif_tready = '1' then
              call_valid <= '0';
              line       <= 0;
              if state = call_recv then
                state <= receive;
              else
                state <= transmit;
              end if;
            end if;
          when receive =>
            if siMPI_data_tvalid = '1' then
              message(line) <= siMPI_data_tdata;
              line          <= line + 1;
              if siMPI_data_tlast = '1' then
                last_line <= line;
                if siMPI_data_tkeep(7) = '1' then
                  words <= 2 * line + 2;
                elsif siMPI_data_tkeep(3) = '1' then
                  words <= 2 * line + 1;
                else
                  words <= 2 * line;
                end if;
                state <= recv_end;
              end if;
            end if;
          when recv_end =>
            if siMPIFeB_tvalid = '1' then
              state <= call_send;
            end if;
          when transmit =>
            if out_valid = '1' and soMPI_data_tready = '1' and out_last = '1' then
              out_valid <= '0';
              state     <= send_end;
            elsif out_valid = '0' or soMPI_data_tready = '1' then
              out_valid        <= '1';
              soMPI_data_tdata <= message(line);
              soMPI_data_tkeep <= x"ff";
              if line = last_line then
                out_last <= '1';
              else
                out_last <= '0';
              end if;
              line <= line + 1;
            end if;
          when send_end =>
            if siMPIFeB_tvalid = '1' then
              line <= 0;
              if siMPIFeB_tdata = FEEDBACK_OK then
                state <= call_recv;
              else
                state <= transmit;
              end if;
            end if;
        end case;
      end if;
    end if;
  end process;
end architecture;
