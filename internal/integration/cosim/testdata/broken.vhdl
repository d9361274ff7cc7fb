
-- An echo role that breaks a rule of its streams from its first message on: rule N after a message of N lines.
library ieee;
use ieee.std_logic_1164.all;

entity role is
  port (
    clk  : in std_logic;
    rst  : in std_logic;
    rank : in std_logic_vector(31 downto 0);
    size : in std_logic_vector(31 downto 0);
    soMPIif_tdata  : out std_logic_vector(71 downto 0);
    soMPIif_tvalid : out std_logic;
    soMPIif_tready : in  std_logic;
    siMPIFeB_tdata  : in  std_logic_vector(7 downto 0);
    siMPIFeB_tvalid : in  std_logic;
    siMPIFeB_tready : out std_logic;
    soMPI_data_tdata  : out std_logic_vector(63 downto 0);
    soMPI_data_tkeep  : out std_logic_vector(7 downto 0);
    soMPI_data_tlast  : out std_logic;
    soMPI_data_tvalid : out std_logic;
    soMPI_data_tready : in  std_logic;
    siMPI_data_tdata  : in  std_logic_vector(63 downto 0);
    siMPI_data_tkeep  : in  std_logic_vector(7 downto 0);
    siMPI_data_tlast  : in  std_logic;
    siMPI_data_tvalid : in  std_logic;
    siMPI_data_tready : out std_logic
  );
end entity;

architecture broken of role is
  signal call_data : std_logic_vector(71 downto 0);
  signal out_data : std_logic_vector(63 downto 0);
  signal out_keep : std_logic_vector(7 downto 0);
  signal call_valid, out_valid, out_last, in_ready, feedback_ready : std_logic;
  signal lines, rule : natural := 0;
  signal toggle, call_refused, out_refused : std_logic := '0';
begin
  soMPI_data_tvalid <= 'U' when rule = 9 else
                       '0' when (rule = 1 and out_refused = '1') or (rule = 5 and soMPI_data_tready = '0') else
                       out_valid;
  soMPIif_tvalid <= 'X' when rule = 13 else
                    '0' when (rule = 6 and call_refused = '1') or (rule = 8 and soMPIif_tready = '0') else
                    call_valid;
  siMPI_data_tready <= 'X' when rule = 15 else in_ready;
  siMPIFeB_tready <= 'U' when rule = 16 else feedback_ready;

  process (all)
  begin
    soMPI_data_tdata <= out_data;
    soMPI_data_tkeep <= out_keep;
    soMPI_data_tlast <= out_last;
    soMPIif_tdata <= call_data;
    case rule is
      when 2 => soMPI_data_tdata(0) <= out_data(0) xor toggle;
      when 3 => soMPI_data_tkeep(7) <= toggle;
      when 4 => soMPI_data_tlast <= toggle;
      when 7 => soMPIif_tdata(8) <= toggle;
      when 10 => soMPI_data_tdata(5) <= 'X';
      when 11 => soMPI_data_tkeep(7) <= 'U';
      when 12 => soMPI_data_tlast <= 'X';
      when 14 => soMPIif_tdata(71) <= 'U';
      when others => null;
    end case;
  end process;

  process (clk)
  begin
    if rising_edge(clk) then
      toggle <= not toggle;
      call_refused <= soMPIif_tvalid and not soMPIif_tready;
      out_refused <= soMPI_data_tvalid and not soMPI_data_tready;
      if siMPI_data_tvalid = '1' and siMPI_data_tready = '1' then
        lines <= lines + 1;
        if siMPI_data_tlast = '1' then
          lines <= 0;
          rule <= lines + 1;
        end if;
      end if;
    end if;
  end process;

  sound : entity work.echo_role
    port map (
      clk => clk, rst => rst, rank => rank, size => size,
      soMPIif_tdata => call_data, soMPIif_tvalid => call_valid, soMPIif_tready => soMPIif_tready,
      siMPIFeB_tdata => siMPIFeB_tdata, siMPIFeB_tvalid => siMPIFeB_tvalid, siMPIFeB_tready => feedback_ready,
      soMPI_data_tdata => out_data, soMPI_data_tkeep => out_keep, soMPI_data_tlast => out_last,
      soMPI_data_tvalid => out_valid, soMPI_data_tready => soMPI_data_tready,
      siMPI_data_tdata => siMPI_data_tdata, siMPI_data_tkeep => siMPI_data_tkeep, siMPI_data_tlast => siMPI_data_tlast,
      siMPI_data_tvalid => siMPI_data_tvalid, siMPI_data_tready => in_ready
    );
end architecture;
