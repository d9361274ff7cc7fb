-- Wireshark dissector for ZRLMPI, the message passing protocol of cloudFPGA clusters.
--
-- Only the first datagram of a DATA message has a header. What the continuation datagrams behind it are follows from what went
-- before between the same two sockets, and by that alone. So every frame is judged once, on the first pass and in order
-- (section "Judging"); what comes out is kept by frame number, and displaying a frame later only looks it up.
--
-- D8, P7 and so on are rules of docs/ZRLMPI_protocol.md.

local zrlmpi = Proto("zrlmpi", "ZRLMPI")

local HEADER_LEN, WORD_LEN, LINE_LEN = 32, 4, 8
local EXT_HEADER_LEN, EXT_VERSION, EXT_MAX_STREAM_PAYLOAD = 80, 0xE2, 32768 -- E1
local ACK_LEN, RANGE_LEN, MAX_RANGES = 12, 8, 32 -- E25
local MARK = "\x96\x96\x96\x96"
local FIRST_PORT, LAST_PORT = 2718, 2845 -- A3: 128 CPU ranks at most may share an address
local MAX_STREAM_WORDS = 67108864 -- D12
local SEND_REQUEST, CLEAR_TO_SEND, DATA, ACK, ERROR = 1, 2, 3, 4, 5
local BARRIER = 4
local TYPES = { "SEND_REQUEST", "CLEAR_TO_SEND", "DATA", "ACK", "ERROR" }
local CALLS = { [0] = "SEND_INT", "RECV_INT", "SEND_FLOAT", "RECV_FLOAT", "BARRIER" }
local CODES = { "cancel", "canceled", "too long", "close" }
local EXT_FLAGS = { "EAGER", "ACK_NOW", "SYNC", "HELLO", "RETRANSMIT", "PLAIN" } -- bits 0 to 5
local COUNTERPART = { [0] = 1, 0, 3, 2, 4 }

local CLOUDFPGA, V09 = 0, 1
zrlmpi.prefs.profile = Pref.enum("Profile", CLOUDFPGA, "cloudfpga: byte 18 must be 0, as deployed nodes demand. " ..
    "v0.9: byte 18 is the tag.", { { 1, "cloudfpga", CLOUDFPGA }, { 2, "v0.9", V09 } }, false)
zrlmpi.prefs.max_datagram = Pref.uint("Largest datagram", 1416,
    "In bytes, header included: max_datagram of the link. Deployed nodes have 1416.")
zrlmpi.prefs.gap = Pref.uint("Longest pause in a message", 50,
    "In milliseconds: a continuation datagram that comes later than this after the one before it does not continue its message.")

zrlmpi.prefs.checksum = Pref.bool("Check the checksum", true,
    "Of packets of the extended profile. Large captures load faster without.")

local F = {
    mark_start = ProtoField.bytes("zrlmpi.mark.start", "Start mark"),
    dst_rank = ProtoField.uint32("zrlmpi.dst_rank", "Destination rank"),
    src_rank = ProtoField.uint32("zrlmpi.src_rank", "Source rank"),
    size = ProtoField.uint32("zrlmpi.size", "Size", base.DEC, nil, nil, "In words; header and padding not counted"),
    call = ProtoField.uint8("zrlmpi.call", "Call", base.DEC, CALLS),
    type = ProtoField.uint8("zrlmpi.type", "Packet type", base.DEC, TYPES),
    tag = ProtoField.uint8("zrlmpi.tag", "Tag"),
    reserved = ProtoField.bytes("zrlmpi.reserved", "Reserved"),
    mark_end = ProtoField.bytes("zrlmpi.mark.end", "End mark"),
    payload = ProtoField.bytes("zrlmpi.payload", "Payload"),
    offset = ProtoField.uint64("zrlmpi.data.offset", "Offset in the message", base.DEC, nil, nil, "In bytes of payload"),
    bytes = ProtoField.uint32("zrlmpi.data.bytes", "Bytes of the message", base.DEC, nil, nil, "Padding not counted"),
    padding = ProtoField.uint32("zrlmpi.data.padding", "Padding", base.DEC, nil, nil, "In bytes"),
    total = ProtoField.uint64("zrlmpi.data.total", "Length of the message", base.DEC, nil, nil, "In bytes"),
    frame = ProtoField.framenum("zrlmpi.data.frame", "DATA header in frame", base.NONE),
    complete = ProtoField.bool("zrlmpi.data.complete", "Completes the message"),
    message = ProtoField.uint32("zrlmpi.message", "Message", base.DEC, nil, nil,
        "Number of the message in the capture, in the order of first packets"),
    request_in = ProtoField.framenum("zrlmpi.request_in", "SEND_REQUEST in frame", base.NONE, frametype.REQUEST),
    clear_in = ProtoField.framenum("zrlmpi.clear_in", "CLEAR_TO_SEND in frame", base.NONE, frametype.RESPONSE),
    ack_in = ProtoField.framenum("zrlmpi.ack_in", "ACK in frame", base.NONE, frametype.ACK),
    time_clear = ProtoField.relative_time("zrlmpi.time_clear", "Time since the SEND_REQUEST"),
    time_data = ProtoField.relative_time("zrlmpi.time_data", "Time since the CLEAR_TO_SEND"),
    time_ack = ProtoField.relative_time("zrlmpi.time_ack", "Time since the end of DATA"),

    ext_version = ProtoField.uint8("zrlmpi.ext.version", "Version", base.HEX),
    ext_flags = ProtoField.uint8("zrlmpi.ext.flags", "Flags", base.HEX),
    ext_eager = ProtoField.bool("zrlmpi.ext.flags.eager", "EAGER", 8, nil, 0x01),
    ext_ack_now = ProtoField.bool("zrlmpi.ext.flags.ack_now", "ACK_NOW", 8, nil, 0x02),
    ext_sync = ProtoField.bool("zrlmpi.ext.flags.sync", "SYNC", 8, nil, 0x04),
    ext_hello = ProtoField.bool("zrlmpi.ext.flags.hello", "HELLO", 8, nil, 0x08),
    ext_retransmit = ProtoField.bool("zrlmpi.ext.flags.retransmit", "RETRANSMIT", 8, nil, 0x10),
    ext_plain = ProtoField.bool("zrlmpi.ext.flags.plain", "PLAIN", 8, nil, 0x20),
    ext_payload = ProtoField.uint32("zrlmpi.ext.payload_length", "Length of the payload", base.DEC, nil, nil, "In bytes"),
    ext_checksum = ProtoField.uint32("zrlmpi.ext.checksum", "Checksum", base.HEX, nil, nil, "CRC-32C of the packet; with PLAIN, of its header"),
    ext_session = ProtoField.uint64("zrlmpi.ext.session", "Session", base.HEX),
    ext_peer_session = ProtoField.uint64("zrlmpi.ext.peer_session", "Peer session", base.HEX),
    ext_number = ProtoField.uint32("zrlmpi.ext.number", "Packet number"),
    ext_acknowledged = ProtoField.uint32("zrlmpi.ext.acknowledged", "Acknowledged", base.DEC, nil, nil,
        "Number of the first packet that has not arrived"),
    ext_message = ProtoField.uint32("zrlmpi.ext.message", "Message of the session"),
    ext_communicator = ProtoField.uint32("zrlmpi.ext.communicator", "Communicator"),
    ext_tag = ProtoField.uint32("zrlmpi.ext.tag", "Tag"),
    ext_question = ProtoField.uint32("zrlmpi.ext.question", "Question", base.DEC, nil, nil, "Asks the rank what it waits for"),
    ext_report = ProtoField.uint32("zrlmpi.ext.report", "Report", base.DEC, nil, nil, "The question that it answers"),
    ext_code = ProtoField.uint32("zrlmpi.ext.code", "Error code", base.DEC, CODES),
    ext_length = ProtoField.uint32("zrlmpi.ext.length", "Length of the message", base.DEC, nil, nil,
        "In bytes; in CLEAR_TO_SEND, as many as the receiver takes"),
    ext_offset = ProtoField.uint32("zrlmpi.ext.offset", "Offset in the message", base.DEC, nil, nil, "In bytes"),
    ext_clock = ProtoField.uint32("zrlmpi.ext.clock", "Clock", base.DEC, nil, nil, "Of the sender; in ACK, of the packet that it answers"),
    ext_message_limit = ProtoField.uint32("zrlmpi.ext.message_limit", "Message limit", base.DEC, nil, nil,
        "First message that may not be sent yet"),
    ext_eager_limit = ProtoField.uint32("zrlmpi.ext.eager_limit", "Eager limit", base.DEC, nil, nil,
        "Eager bytes that may be sent in all"),
    ext_delay = ProtoField.uint32("zrlmpi.ext.delay", "Delay of the acknowledgement", base.DEC, nil, nil, "In microseconds"),
    ext_range_first = ProtoField.uint32("zrlmpi.ext.range.first", "First packet that has arrived beyond"),
    ext_range_end = ProtoField.uint32("zrlmpi.ext.range.end", "Packet after the last of them"),
}
local field_list = {}
for _, field in pairs(F) do field_list[#field_list + 1] = field end
zrlmpi.fields = field_list

local E = {}
for _, e in ipairs({
    { "bad_header", "The header is bad", expert.group.MALFORMED, expert.severity.ERROR },
    { "reserved_byte", "A byte that must be 0 is not", expert.group.PROTOCOL, expert.severity.ERROR },
    { "wrong_call", "The call does not go with the packet type", expert.group.PROTOCOL, expert.severity.WARN },
    { "wrong_source", "The source rank does not fit the address", expert.group.PROTOCOL, expert.severity.ERROR },
    { "wrong_destination", "The destination rank does not fit the address", expert.group.PROTOCOL, expert.severity.WARN },
    { "datatype_mismatch", "INT meets FLOAT", expert.group.PROTOCOL, expert.severity.WARN },
    { "size_mismatch", "The length is wrong", expert.group.PROTOCOL, expert.severity.ERROR },
    { "padding", "The payload is padded", expert.group.PROTOCOL, expert.severity.CHAT },
    { "retransmitted_packet", "Retransmitted", expert.group.SEQUENCE, expert.severity.NOTE },
    { "duplicate_packet", "Delivered twice", expert.group.SEQUENCE, expert.severity.NOTE },
    { "stale_header", "Answers nothing in progress", expert.group.SEQUENCE, expert.severity.WARN },
    { "unsolicited_data", "DATA that was not cleared", expert.group.SEQUENCE, expert.severity.WARN },
    { "unexpected_payload", "Payload without its DATA header", expert.group.SEQUENCE, expert.severity.WARN },
    { "gap", "Payload after a pause or a missing datagram", expert.group.SEQUENCE, expert.severity.WARN },
    { "crossed_requests", "Both ranks ask to send", expert.group.SEQUENCE, expert.severity.NOTE },
    { "revocation", "Revokes an earlier packet", expert.group.SEQUENCE, expert.severity.NOTE },
    { "bad_checksum", "The packet is corrupt", expert.group.CHECKSUM, expert.severity.ERROR },
    { "error_packet", "ERROR packet", expert.group.RESPONSE_CODE, expert.severity.WARN },
}) do
    E[e[1]] = ProtoExpert.new("zrlmpi.expert." .. e[1], e[2], e[3], e[4])
end
local expert_list = {}
for _, e in pairs(E) do expert_list[#expert_list + 1] = e end
zrlmpi.experts = expert_list

-- State of the first pass, and its results.
local judged      -- frame number → place in the frame → judgement
local flows       -- one direction between two sockets → { rx = message being received, pair = whose messages go there }
local links       -- sender → receiver → { cur = message, prev = the one before, stale = unused CLEAR_TO_SEND }
local rank_of     -- address and port → rank that spoke first from there
local source_of   -- receiver and rank → address from which that rank first sent to the receiver
local messages    -- how many there are

function zrlmpi.init()
    judged, flows, links, rank_of, source_of, messages = {}, {}, {}, {}, {}, 0
end

---------------------------------------------------------------------------------------------------------------- Header

-- marked reports whether one of the marks is there: the bytes were meant to be a header.
local function marked(tvb)
    local have = tvb:len()
    return have >= 4 and tvb:raw(0, 4) == MARK or have >= HEADER_LEN and tvb:raw(28, 4) == MARK
end

-- wrong_byte names the first of the bytes from..to of a header that is not the one wanted.
local function wrong_byte(bytes, from, to, want, rule)
    for i = from, to do
        local b = bytes:byte(i + 1)
        if b ~= want then return string.format("byte %d is 0x%02x, but %s", i, b, rule) end
    end
end

local function uint32(bytes, at)
    local b0, b1, b2, b3 = bytes:byte(at + 1, at + 4)
    return b0 + 256 * (b1 + 256 * (b2 + 256 * b3))
end

-- parse returns the header at a place in a buffer, and what is wrong with it, in the order of H12: the name of an expert
-- field, and words. It works on a string: an object of Wireshark's for each field takes ten times as long.
local function parse(tvb, at)
    local have = tvb:len() - at
    if have < HEADER_LEN then
        return nil, "bad_header", string.format("%d bytes, but a header has %d", have, HEADER_LEN)
    end
    local bytes = tvb:raw(at, HEADER_LEN)
    local h = {
        dst = uint32(bytes, 4), src = uint32(bytes, 8), size = uint32(bytes, 12),
        call = bytes:byte(17), type = bytes:byte(18), tag = bytes:byte(19),
    }
    local defect = wrong_byte(bytes, 0, 3, 0x96, "the start mark is 0x96")
        or wrong_byte(bytes, 28, 31, 0x96, "the end mark is 0x96")
    if defect then return h, "bad_header", defect end
    defect = wrong_byte(bytes, zrlmpi.prefs.profile == V09 and 19 or 18, 27, 0,
        "must be 0: deployed nodes drop the packet silently")
    if defect then return h, "reserved_byte", defect end
    if not CALLS[h.call] then
        return h, "bad_header", string.format("byte 16 is 0x%02x, but the calls are 0 to 4", h.call)
    elseif not TYPES[h.type] then
        return h, "bad_header", string.format("byte 17 is 0x%02x, but the packet types are 1 to 5", h.type)
    end
    return h
end

local function header_text(h)
    local s = string.format("%s %d→%d %s", TYPES[h.type] or "type(" .. h.type .. ")", h.src, h.dst,
        CALLS[h.call] or "call(" .. h.call .. ")")
    if h.size ~= 0 or h.type == DATA then s = s .. string.format(" size=%d", h.size) end
    if h.tag ~= 0 then s = s .. string.format(" tag=%d", h.tag) end
    return s
end

------------------------------------------------------------------------------------------------------ Extended profile

-- is_extended reports whether a packet of the extended profile begins at a place in a buffer: no other has bit 7 of byte 19.
local function is_extended(tvb, at)
    if tvb:len() - at < 20 or tvb:raw(at, 4) ~= MARK then return false end
    local version, flags = tvb:raw(at + 18, 2):byte(1, 2)
    return version == EXT_VERSION and flags >= 0x80
end

-- CRC-32C, a byte at a time. Lua's bit library is that of Wireshark, whose numbers have a sign.
local crc_table = {}
for i = 0, 255 do
    local c = i
    for _ = 1, 8 do
        local odd = bit.band(c, 1) == 1
        c = bit.rshift(c, 1)
        if odd then c = bit.bxor(c, 0x82F63B78) end
    end
    crc_table[i] = c
end

local function crc32c(bytes)
    local bxor, band, rshift = bit.bxor, bit.band, bit.rshift
    local c = bit.bnot(0)
    for from = 1, #bytes, 4096 do
        local chunk = { bytes:byte(from, math.min(from + 4095, #bytes)) }
        for i = 1, #chunk do c = bxor(rshift(c, 8), crc_table[band(bxor(c, chunk[i]), 0xff)]) end
    end
    return bit.bnot(c) % 2^32
end

-- ext_checksum is that of a whole packet, or with the flag PLAIN of its header (E43).
local function ext_checksum(tvb)
    local n = bit.band(tvb:raw(19, 1):byte(1), 0x20) ~= 0 and EXT_HEADER_LEN or tvb:len()
    return crc32c(tvb:raw(0, 24) .. "\0\0\0\0" .. tvb:raw(28, n - 28))
end

-- parse_extended returns the header at a place in a buffer, and what is wrong with it, as parse does, in the order of E2
-- but for length and checksum.
local function parse_extended(tvb, at)
    local have = tvb:len() - at
    if have < EXT_HEADER_LEN then
        return nil, "bad_header", string.format("%d bytes, but a header of the extended profile has %d", have, EXT_HEADER_LEN)
    end
    local bytes = tvb:raw(at, EXT_HEADER_LEN)
    local h = {
        dst = uint32(bytes, 4), src = uint32(bytes, 8), call = bytes:byte(17), type = bytes:byte(18), flags = bytes:byte(20),
        payload = uint32(bytes, 20), checksum = uint32(bytes, 24), number = uint32(bytes, 48), acknowledged = uint32(bytes, 52),
        message = uint32(bytes, 56), communicator = uint32(bytes, 60), tag = uint32(bytes, 64), length = uint32(bytes, 68),
        offset = uint32(bytes, 72),
    }
    local defect = wrong_byte(bytes, 28, 31, 0x96, "the end mark is 0x96")
    if defect then
        return h, "bad_header", defect
    elseif not CALLS[h.call] then
        return h, "bad_header", string.format("byte 16 is 0x%02x, but the calls are 0 to 4", h.call)
    elseif not TYPES[h.type] then
        return h, "bad_header", string.format("byte 17 is 0x%02x, but the packet types are 1 to 5", h.type)
    elseif bit.band(h.flags, 0x40) ~= 0 then
        return h, "reserved_byte", string.format("byte 19 is 0x%02x, but bit 6 must be 0", h.flags)
    end
    return h
end

local function ext_flag(h, n) return bit.band(h.flags, bit.lshift(1, n - 1)) ~= 0 end

-- question and report say whether a packet asks for a report, or has a part of one.
local function question(h) return h.type == ACK and h.tag ~= 0 and ext_flag(h, 4) end
local function report(h) return h.type == ACK and h.tag ~= 0 and not ext_flag(h, 4) end

-- ack_ranges returns how many ranges the payload of an ACK has, nil if it is none.
local function ack_ranges(h)
    local n = (h.payload - ACK_LEN) / RANGE_LEN
    if h.type == ACK and not report(h) and n >= 0 and n <= MAX_RANGES and n == math.floor(n) then return n end
end

local function ext_text(h, tvb)
    local s = { string.format("%s %d→%d %s", TYPES[h.type] or "type(" .. h.type .. ")", h.src, h.dst,
        CALLS[h.call] or "call(" .. h.call .. ")") }
    local function add(...) s[#s + 1] = string.format(...) end
    if h.number ~= 0 then add("#%d", h.number) end
    if h.message ~= 0 then add("msg=%d", h.message) end
    if h.type == SEND_REQUEST then
        add("tag=%d comm=%d length=%d", h.tag, h.communicator, h.length)
    elseif h.type == CLEAR_TO_SEND then
        add("takes=%d", h.length)
    elseif h.type == DATA then
        add("tag=%d comm=%d %d..%d of %d", h.tag, h.communicator, h.offset, h.offset + h.payload, h.length)
    elseif h.type == ERROR then
        add('"%s"', CODES[h.tag] or string.format("code(%d)", h.tag))
    elseif question(h) then
        add("question=%d", h.tag)
    elseif report(h) then
        add("report=%d %d..%d of %d", h.tag, h.offset, h.offset + h.payload, h.length)
    elseif h.type == ACK and h.offset ~= 0 then
        add("probe=%d", h.offset)
    end
    for i, name in ipairs(EXT_FLAGS) do
        if ext_flag(h, i) then add("%s", name) end
    end
    add("ack=%d", h.acknowledged)
    local n = ack_ranges(h)
    if n and tvb:len() >= EXT_HEADER_LEN + h.payload then
        local payload = tvb:raw(EXT_HEADER_LEN, h.payload)
        local micros = uint32(payload, 8)
        add("messages<%d eager<%d delay=%dµs", uint32(payload, 0), uint32(payload, 4), micros)
        local ranges = {}
        for i = 0, n - 1 do
            local first, last = uint32(payload, ACK_LEN + i * RANGE_LEN), uint32(payload, ACK_LEN + i * RANGE_LEN + 4)
            ranges[#ranges + 1] = last == first + 1 and string.format("%d", first) or string.format("%d..%d", first, last)
        end
        if n > 0 then add("arrived=%s", table.concat(ranges, ",")) end
    end
    return table.concat(s, " ")
end

--------------------------------------------------------------------------------------------------------------- Judging

-- A judgement j of one datagram or stream packet: message, notes, and where they apply offset, bytes, padding, total,
-- frame, complete, request_in, clear_in and the times. A place p: number, time, src and dst (sockets), src_ip, tcp.

local function note(j, name, text, ...) j.notes[#j.notes + 1] = { name, string.format(text, ...) } end

-- seconds is the time from one frame to another. The absolute times are rounded to a fraction of a microsecond; the
-- relative ones are exact, but begin anew where the user has set a time reference.
local function seconds(later, earlier)
    local rounded, exact = later.abs - earlier.abs, later.rel - earlier.rel
    return math.abs(rounded - exact) < 1e-6 and exact or rounded
end

local function elapsed(later, earlier)
    local s = seconds(later, earlier)
    local whole = s < 0 and math.ceil(s) or math.floor(s)
    return NSTime.new(whole, math.floor((s - whole) * 1e9 + 0.5))
end

local function soon(p, earlier)
    return not p.tcp and earlier and seconds(p.time, earlier) < zrlmpi.prefs.gap / 1000
end

local function entry(of, key)
    if not of[key] then of[key] = {} end
    return of[key]
end

local function pair_of(src, src_rank, dst, dst_rank)
    return entry(links, string.format("%s#%d>%s#%d", src, src_rank, dst, dst_rank))
end

local function open_message(pair, h)
    messages = messages + 1
    if pair.prev and pair.prev.data then pair.prev.data.first = nil end -- messages are kept forever; bytes are not
    if pair.cur then pair.prev = pair.cur end
    pair.cur = { id = messages, call = h.call, tag = h.tag }
    return pair.cur
end

-- in_progress: nothing shows that the sender is done with the message. With its last byte the receiver has acknowledged
-- it, whether the ACK was recorded or not.
local function in_progress(m)
    return m and not (m.ack or m.ended or m.data and m.data.complete)
end

-- again notes a packet that was seen before: a duplicate if it comes sooner than any time-out, unless the
-- sender had another reason to send it at once.
local function again(j, p, what, earlier, has_reason)
    local name, how = "retransmitted_packet", "retransmitted"
    if not has_reason and soon(p, earlier.time) then name, how = "duplicate_packet", "delivered twice" end
    note(j, name, "%s was %s, %.6f s after frame %d", what, how, seconds(p.time, earlier.time), earlier.number)
end

local function compare_call(j, m, h, want)
    if h.call ~= want and h.call ~= BARRIER then
        note(j, "datatype_mismatch", "%s where %s is expected: INT never matches FLOAT", CALLS[h.call], CALLS[want])
    end
    if zrlmpi.prefs.profile == V09 and h.tag ~= m.tag then
        note(j, "datatype_mismatch", "tag %d where %d is expected", h.tag, m.tag)
    end
end

local function on_request(j, p, h, flow)
    local pair, reverse = pair_of(p.src, h.src, p.dst, h.dst), pair_of(p.dst, h.dst, p.src, h.src)
    local m = pair.cur
    flow.pair = pair
    -- A sender does not ask again once it sends DATA: if this comes later than a duplicate, it has aborted.
    if in_progress(m) and m.reopened then
        j.request_in, m.reopened = m.request and m.request.number, nil
    elseif in_progress(m) and m.request and h.size <= m.number and (not m.data or soon(p, m.data.time)) then
        -- A crossed request is retransmitted right after the peer's message (P3): that is no duplicate.
        again(j, p, "SEND_REQUEST", m.asked, m.asked.acks ~= (reverse.acks or 0))
        j.request_in = m.request.number
    else
        m = open_message(pair, h)
        m.request, m.number = { number = p.number, time = p.time }, h.size
        flow.rx = nil
        local other = reverse.cur
        if in_progress(other) and other.request and not other.clear and not other.data then
            note(j, "crossed_requests", "the SEND_REQUEST of rank %d in frame %d is not answered yet: both ask to send",
                h.dst, other.request.number)
        end
    end
    m.asked = { number = p.number, time = p.time, acks = reverse.acks or 0 }
    m.call, m.tag = h.call, h.tag
    j.message = m
end

local function on_clear(j, p, h)
    local pair = pair_of(p.dst, h.dst, p.src, h.src)
    local m = pair.cur
    entry(flows, p.dst .. ">" .. p.src).pair = pair
    if not m or m.ack or m.ended then
        note(j, "stale_header", "CLEAR_TO_SEND answers no SEND_REQUEST that was recorded")
        pair.stale = { number = p.number, time = p.time }
        return
    end
    j.message = m
    if m.request then
        j.request_in = m.request.number
        j.time_clear = elapsed(p.time, m.request.time)
    end
    compare_call(j, m, h, COUNTERPART[m.call])
    if m.cleared then
        again(j, p, "CLEAR_TO_SEND", m.cleared)
    elseif m.data then
        note(j, "stale_header", "CLEAR_TO_SEND for DATA that is being sent already, since frame %d", m.data.number)
    end
    m.cleared = { number = p.number, time = p.time }
    if not m.clear then m.clear = m.cleared end
end

-- length_fits is D9 for n bytes of payload, of which tvb has the end, at an offset of a message.
local function length_fits(offset, total, n, tvb)
    local full = zrlmpi.prefs.max_datagram - (offset == 0 and HEADER_LEN or 0)
    local left = total - offset
    if n > full + LINE_LEN then return false end
    if n < left then
        return n == full
    end
    if total == 0 then return n <= LINE_LEN end -- the FPGA's padding of nothing is not zero
    if n - left > LINE_LEN - WORD_LEN then return false end
    local padding_at = tvb:reported_len() - (n - left)
    return padding_at >= tvb:len() or not tvb:raw(padding_at):find("[^%z]")
end

-- skips reports whether n bytes of payload end a message of which left bytes are to come after full datagrams that are
-- missing.
local function skips(left, n)
    local full = zrlmpi.prefs.max_datagram
    if full == 0 or n == 0 or n >= left or n == full or n > full + LINE_LEN then return false end
    return (left - n) % full == 0 or (left + -left % LINE_LEN - n) % full == 0
end

-- take counts n bytes of payload to the message that a flow receives.
local function take(j, p, flow, n)
    local rx = flow.rx
    local data = rx.message.data
    j.offset, j.total, j.frame = rx.offset, rx.total, rx.number
    j.bytes = math.min(n, rx.total - rx.offset)
    j.padding = n - j.bytes
    if j.padding > 0 then note(j, "padding", "%d bytes of padding, as FPGAs send", j.padding) end
    rx.offset, rx.time, data.time = rx.offset + j.bytes, p.time, p.time
    j.complete = rx.offset >= rx.total
    data.got = rx.offset
    if j.complete then data.complete, flow.rx = true, nil end
end

-- same_data reports whether DATA is that of a message again; on a stream, call and size must do (C8).
local function same_data(m, h, first)
    return m and m.data and m.data.size == h.size and m.data.call == h.call and m.data.first == first
end

local function on_data(j, p, h, flow, tvb, n)
    local pair = pair_of(p.src, h.src, p.dst, h.dst)
    local m, total = pair.cur, h.size * WORD_LEN
    flow.pair = pair
    -- D8 compares a checksum; the bytes themselves are at hand here.
    local first = not p.tcp and tvb:raw(HEADER_LEN) or ""
    local function unsolicited()
        if pair.stale then
            m.clear, m.cleared, pair.stale = pair.stale, pair.stale, nil -- P7
        else
            note(j, "unsolicited_data", "no CLEAR_TO_SEND was recorded for this DATA")
        end
    end
    if same_data(m, h, first) then
        again(j, p, "DATA", m.data)
    elseif not m or m.data or m.ack or m.ended then
        m = open_message(pair, h)
        unsolicited()
    elseif not m.clear then
        unsolicited()
    elseif m.unexpected and not soon(p, m.unexpected.time) then
        again(j, p, "DATA", m.unexpected)
    end
    compare_call(j, m, h, m.call)
    if m.request then j.request_in = m.request.number end
    if m.clear then
        local cleared = m.cleared or m.clear
        j.clear_in, j.time_data = cleared.number, elapsed(p.time, cleared.time)
    end
    j.message = m
    m.data = { number = p.number, time = p.time, size = h.size, call = h.call, first = first, got = 0 }
    if not p.tcp and not length_fits(0, total, n, tvb) then
        note(j, "size_mismatch", "%d bytes of payload do not fit the first datagram of a message of %d", n, total)
        m.data.unfit, flow.rx = true, nil
        return
    end
    flow.rx = { message = m, h = h, first = first, number = p.number, offset = 0, total = total, time = p.time }
    take(j, p, flow, n)
end

local function on_ack(j, p, h)
    local pair = pair_of(p.dst, h.dst, p.src, h.src)
    local m, prev = pair.cur, pair.prev
    -- An ACK that comes behind the next SEND_REQUEST may be that of the message before.
    if m and not m.data and not m.clear and prev and prev.data then m = prev end
    if not m or not m.data then
        if m and m.clear then m.ack, j.message = { number = p.number, time = p.time }, m end
        if not m or not m.unexpected then note(j, "stale_header", "ACK answers no DATA that was recorded") end
        return
    end
    local data_again = m.ack and m.data.number > m.ack.number
    if m.ack and not data_again and not soon(p, m.ack.time) then
        note(j, "stale_header", "ACK answers nothing: the message was acknowledged in frame %d", m.ack.number)
        return
    end
    if m.ack then again(j, p, "ACK", m.ack, data_again) end
    j.message, j.frame, j.time_ack = m, m.data.number, elapsed(p.time, m.data.time)
    if m.request then j.request_in = m.request.number end
    if not m.data.complete and not m.data.unfit then
        note(j, "size_mismatch", "acknowledged, but only %d of %d bytes were recorded",
            m.data.got, m.data.size * WORD_LEN)
    end
    compare_call(j, m, h, COUNTERPART[m.call])
    m.ack = { number = p.number, time = p.time }
    pair.acks = (pair.acks or 0) + 1
end

-- on_error ends the send of the rank that gets the ERROR, or else its receive (P12).
local function on_error(j, p, h)
    note(j, "error_packet", "ERROR: deployed nodes never send it; it ends the operation in progress")
    for _, pair in ipairs({ pair_of(p.dst, h.dst, p.src, h.src), pair_of(p.src, h.src, p.dst, h.dst) }) do
        local m = pair.cur
        if m and not m.ack and not m.ended then
            j.message, m.ended = m, p.number
            return
        end
    end
    note(j, "stale_header", "ERROR answers nothing in progress")
end

-- on_revocation ends the message of a SEND_REQUEST, or has its sender ask again, which a CLEAR_TO_SEND had cleared (P28).
local function on_revocation(j, p, h)
    note(j, "revocation", "revokes %s, number %d", TYPES[h.type], h.size - 1)
    local pair = h.type == SEND_REQUEST and pair_of(p.src, h.src, p.dst, h.dst) or pair_of(p.dst, h.dst, p.src, h.src)
    local m = pair.cur
    if not m or m.ack or m.ended or not m.number or m.number >= h.size then return end -- it was revoked before
    j.message = m
    if h.type == SEND_REQUEST then
        m.ended = p.number
    else
        m.clear, m.cleared, m.data, m.number, m.reopened = nil, nil, nil, h.size, true
    end
end

-- compare_source is A5 without a rank map: what was said first holds.
local function compare_source(j, p, h)
    local rank, known = rank_of[p.src], p.dst .. "#" .. string.format("%d", h.src)
    if rank and rank ~= h.src then
        note(j, "wrong_source", "%s speaks for rank %d, but was rank %d before", p.src, h.src, rank)
    elseif source_of[known] and source_of[known] ~= p.src_ip then
        note(j, "wrong_source", "rank %d sends from %s, but was at %s before", h.src, p.src_ip, source_of[known])
    end
    if rank_of[p.dst] and rank_of[p.dst] ~= h.dst then
        note(j, "wrong_destination", "addressed to rank %d, but %s is rank %d", h.dst, p.dst, rank_of[p.dst])
    end
    rank_of[p.src] = rank or h.src
    source_of[known] = source_of[known] or p.src_ip
end

-- on_packet handles a packet with a valid header and n bytes of payload.
local function on_packet(j, p, h, flow, tvb, n)
    if not p.tcp and h.type ~= DATA and n > 0 then
        note(j, "size_mismatch", "a %s of %d bytes is dropped: it must have %d",
            TYPES[h.type], n + HEADER_LEN, HEADER_LEN)
        return
    end
    compare_source(j, p, h)
    local sends = h.call == 0 or h.call == 2
    if h.call == BARRIER and h.size > 0 and (h.type == SEND_REQUEST or h.type == CLEAR_TO_SEND) then
        on_revocation(j, p, h)
        return
    elseif h.call == BARRIER then
        note(j, "wrong_call", "BARRIER: no deployed node sends it, and the FPGA drops it")
        return
    elseif h.type ~= ERROR and sends ~= (h.type == SEND_REQUEST or h.type == DATA) then
        note(j, "wrong_call", "%s with %s is dropped: the call is the sender's own operation",
            TYPES[h.type], CALLS[h.call])
        return
    end
    if h.type == SEND_REQUEST then on_request(j, p, h, flow)
    elseif h.type == CLEAR_TO_SEND then on_clear(j, p, h)
    elseif h.type == DATA then on_data(j, p, h, flow, tvb, n)
    elseif h.type == ACK then on_ack(j, p, h)
    else on_error(j, p, h) end
end

-- on_continuation takes a datagram that is no packet. In the middle of a message it is payload.
local function on_continuation(j, p, flow, tvb, n, defect, text)
    local rx = flow.rx
    if rx then
        j.message, j.src, j.dst = rx.message, rx.h.src, rx.h.dst
        if not soon(p, rx.time) then
            note(j, "gap", "%.3f s after the datagram before it: the message in frame %d starts over",
                seconds(p.time, rx.time), rx.number)
            flow.rx = nil
        elseif skips(rx.total - rx.offset, n) then
            note(j, "gap", "the last %d bytes come at offset %d of %d, datagrams are missing: the message in frame %d starts over",
                n, rx.offset, rx.total, rx.number)
            flow.rx = nil
        elseif not length_fits(rx.offset, rx.total, n, tvb) then
            note(j, "size_mismatch", "%d bytes do not fit at offset %d of %d: the message in frame %d starts over",
                n, rx.offset, rx.total, rx.number)
            flow.rx = nil
        else
            take(j, p, flow, n)
            j.continued = true
        end
    elseif flow.pair and not marked(tvb) then
        note(j, "unexpected_payload", "%d bytes of payload, but no message expects any: the DATA header was lost, or bad", n)
        local m = flow.pair.cur
        if m and not m.ended and (not m.ack or m.data and soon(p, m.data.time)) then
            j.message = m
            m.unexpected = { number = p.number, time = p.time }
        end
    else
        note(j, defect, "%s", text)
        j.bad = true
    end
end

-- is_packet is D8 for a datagram of n bytes.
local function is_packet(p, flow, tvb, n, h, defect)
    local rx = flow.rx
    if not rx then return not defect end
    local control = n == HEADER_LEN and rx.total - rx.offset ~= HEADER_LEN
    return not defect and h.src == rx.h.src and h.dst == rx.h.dst and (control
        or h.type == DATA and h.size == rx.h.size and h.call == rx.h.call and tvb:raw(HEADER_LEN) == rx.first
        or not soon(p, rx.time)) -- the receiver has given that message up
end

-- judge_datagram examines a datagram, of which tvb is what was recorded of n bytes.
local function judge_datagram(p, tvb, n)
    local j, flow = { notes = {} }, entry(flows, p.src .. ">" .. p.dst)
    local h, defect, text = parse(tvb, 0)
    local rx = flow.rx
    if is_packet(p, flow, tvb, n, h, defect) then
        j.header = true
        on_packet(j, p, h, flow, tvb, n - HEADER_LEN)
    elseif h and defect and marked(tvb) and (not rx or n == HEADER_LEN and rx.total - rx.offset ~= HEADER_LEN) then
        note(j, defect, "%s", text)
        j.header, j.bad = true, true
        -- Only what follows shows whether this receiver drops it, so it is tracked like a valid one.
        if defect == "reserved_byte" and CALLS[h.call] and TYPES[h.type] then
            on_packet(j, p, h, flow, tvb, n - HEADER_LEN)
        end
    else
        on_continuation(j, p, flow, tvb, n, defect, text)
    end
    return j
end

local function judge_stream_packet(p, tvb, h, defect, text)
    local j = { notes = {}, header = h ~= nil and marked(tvb), bad = defect ~= nil }
    if defect then
        note(j, defect, "%s: the stream has lost its framing", text)
    else
        on_packet(j, p, h, entry(flows, p.src .. ">" .. p.dst), tvb, h.type == DATA and h.size * WORD_LEN or 0)
    end
    return j
end

-- judge_extended examines one packet of the extended profile, which is all of tvb, and had n bytes before it was recorded.
-- It says what it is by itself: nothing is followed.
local function judge_extended(tvb, n)
    local j = { notes = {}, extended = true }
    local h, defect, text = parse_extended(tvb, 0)
    j.bad = defect ~= nil
    if not h or defect == "bad_header" then
        note(j, defect, "%s", text)
        return j
    end
    local follow = n - EXT_HEADER_LEN
    if follow ~= h.payload then
        j.bad = true
        note(j, "size_mismatch", "%d bytes follow the header, which says %d", follow, h.payload)
        return j
    end
    if zrlmpi.prefs.checksum and tvb:len() == n then
        local sum = ext_checksum(tvb)
        if sum ~= h.checksum then
            j.bad = true
            note(j, "bad_checksum", "the checksum is 0x%08x, but that of these bytes is 0x%08x: it was corrupted in transit",
                h.checksum, sum)
            return j
        end
    end
    if defect then note(j, defect, "%s", text) end
    if ext_flag(h, 5) then note(j, "retransmitted_packet", "packet %d was retransmitted: it has the flag RETRANSMIT", h.number) end
    if h.type == ERROR then
        note(j, "error_packet", "ERROR: %s", CODES[h.tag] or string.format("code %d", h.tag))
    end
    return j
end

-- recall returns the judgement of the bytes at a place in a frame; the first time, it judges. A frame can hold several
-- packets, of a stream or in a tunnel.
local function recall(pinfo, tvb, judge)
    local frame = entry(judged, pinfo.number)
    local key = tvb:offset() .. ":" .. tvb:reported_len()
    if not frame[key] then frame[key] = judge() end
    return frame[key]
end

local function place(pinfo, tcp)
    local src, dst = tostring(pinfo.src), tostring(pinfo.dst)
    -- On TCP a rank has an address of its own (C3), and another port for each connection.
    return {
        number = pinfo.number, time = { abs = pinfo.abs_ts, rel = pinfo.rel_ts }, src_ip = src, tcp = tcp,
        src = tcp and src or src .. " port " .. pinfo.src_port, dst = tcp and dst or dst .. " port " .. pinfo.dst_port,
    }
end

-------------------------------------------------------------------------------------------------------------- Display

local function generated(tree, field, value)
    if value ~= nil then tree:add(field, value):set_generated(true) end
end

local function add_header(tree, tvb)
    tree:add(F.mark_start, tvb(0, 4))
    tree:add_le(F.dst_rank, tvb(4, 4))
    tree:add_le(F.src_rank, tvb(8, 4))
    tree:add_le(F.size, tvb(12, 4))
    tree:add(F.call, tvb(16, 1))
    tree:add(F.type, tvb(17, 1))
    tree:add(F.tag, tvb(18, 1))
    tree:add(F.reserved, tvb(19, 9))
    tree:add(F.mark_end, tvb(28, 4))
end

local function summary(j, h, n)
    if j.continued then
        local last = j.bytes > 0 and string.format("bytes %d–%d", j.offset, j.offset + j.bytes - 1) or "0 bytes"
        return string.format("DATA continued %d→%d, %s of %d [frame %d]", j.src, j.dst, last, j.total, j.frame)
    elseif j.bad and not j.header then
        return "No ZRLMPI header: " .. j.notes[1][2]
    elseif j.header then
        return (j.bad and "Bad header: " or "") .. header_text(h)
    end
    return string.format("Payload without a DATA header, %d bytes", n)
end

local function add_extended(tree, tvb, h)
    tree:add(F.mark_start, tvb(0, 4))
    tree:add_le(F.dst_rank, tvb(4, 4))
    tree:add_le(F.src_rank, tvb(8, 4))
    tree:add_le(F.size, tvb(12, 4))
    tree:add(F.call, tvb(16, 1))
    tree:add(F.type, tvb(17, 1))
    tree:add(F.ext_version, tvb(18, 1))
    local flags = tree:add(F.ext_flags, tvb(19, 1))
    for _, field in ipairs({ F.ext_eager, F.ext_ack_now, F.ext_sync, F.ext_hello, F.ext_retransmit, F.ext_plain }) do
        flags:add(field, tvb(19, 1))
    end
    tree:add_le(F.ext_payload, tvb(20, 4))
    tree:add_le(F.ext_checksum, tvb(24, 4))
    tree:add(F.mark_end, tvb(28, 4))
    tree:add_le(F.ext_session, tvb(32, 8))
    tree:add_le(F.ext_peer_session, tvb(40, 8))
    tree:add_le(F.ext_number, tvb(48, 4))
    tree:add_le(F.ext_acknowledged, tvb(52, 4))
    tree:add_le(F.ext_message, tvb(56, 4))
    tree:add_le(F.ext_communicator, tvb(60, 4))
    local tag = h.type == ERROR and F.ext_code or question(h) and F.ext_question or report(h) and F.ext_report or F.ext_tag
    tree:add_le(tag, tvb(64, 4))
    tree:add_le(F.ext_length, tvb(68, 4))
    tree:add_le(F.ext_offset, tvb(72, 4))
    tree:add_le(F.ext_clock, tvb(76, 4))
    local n, payload = ack_ranges(h), tvb:len() - EXT_HEADER_LEN
    if n and payload >= h.payload then
        tree:add_le(F.ext_message_limit, tvb(EXT_HEADER_LEN, 4))
        tree:add_le(F.ext_eager_limit, tvb(EXT_HEADER_LEN + 4, 4))
        tree:add_le(F.ext_delay, tvb(EXT_HEADER_LEN + 8, 4))
        for i = 0, n - 1 do
            tree:add_le(F.ext_range_first, tvb(EXT_HEADER_LEN + ACK_LEN + i * RANGE_LEN, 4))
            tree:add_le(F.ext_range_end, tvb(EXT_HEADER_LEN + ACK_LEN + 4 + i * RANGE_LEN, 4))
        end
    elseif payload > 0 then
        tree:add(F.payload, tvb(EXT_HEADER_LEN, payload))
    end
end

-- show displays one judged packet, which is all of tvb.
local function show(tvb, pinfo, tree, j)
    local captured = tvb:len()
    local h = j.header and parse(tvb, 0) or nil
    local extended = j.extended and parse_extended(tvb, 0)
    local text
    if extended then
        text = (j.bad and "Bad packet: " or "") .. ext_text(extended, tvb)
    elseif j.extended then
        text = "Bad packet: " .. j.notes[1][2]
    else
        text = summary(j, h, tvb:reported_len())
    end
    -- Several packets in a frame: the first one clears what the layer below has said.
    if pinfo.private.zrlmpi then
        pinfo.cols.info:append("; " .. text)
    else
        pinfo.cols.protocol = "ZRLMPI"
        pinfo.cols.info = text
    end
    pinfo.cols.info:fence()
    pinfo.private.zrlmpi = "1"

    local sub = tree:add(zrlmpi, tvb(), "ZRLMPI, " .. text)
    local at = 0
    if extended then
        add_extended(sub, tvb, extended)
        at = captured
    elseif j.header then
        add_header(sub, tvb)
        at = HEADER_LEN
    elseif j.src then
        generated(sub, F.dst_rank, j.dst)
        generated(sub, F.src_rank, j.src)
    end
    if j.offset then
        generated(sub, F.offset, UInt64.new(j.offset % 2^32, math.floor(j.offset / 2^32)))
        generated(sub, F.bytes, j.bytes)
        generated(sub, F.padding, j.padding)
        generated(sub, F.total, UInt64.new(j.total % 2^32, math.floor(j.total / 2^32)))
        generated(sub, F.complete, j.complete)
    end
    generated(sub, F.frame, j.frame)
    local m = j.message
    if m then
        generated(sub, F.message, m.id)
        generated(sub, F.request_in, j.request_in)
        -- What came later is known when the frame is displayed again.
        local asks = h and h.type == SEND_REQUEST
        generated(sub, F.clear_in, j.clear_in or asks and m.clear and m.clear.number or nil)
        if (asks or j.offset) and m.ack then generated(sub, F.ack_in, m.ack.number) end
        generated(sub, F.time_clear, j.time_clear)
        generated(sub, F.time_data, j.time_data)
        generated(sub, F.time_ack, j.time_ack)
    end
    local payload = math.min(j.bytes or captured, captured - at)
    if payload > 0 then sub:add(F.payload, tvb(at, payload)) end
    for _, n in ipairs(j.notes) do sub:add_proto_expert_info(E[n[1]], n[2]) end
end

-- dissect_quoted shows what an ICMP error quotes. It was sent before, and changes nothing.
local function dissect_quoted(tvb, pinfo, tree)
    if is_extended(tvb, 0) and not select(2, parse_extended(tvb, 0)) then
        local extended = parse_extended(tvb, 0)
        add_extended(tree:add(zrlmpi, tvb(), "ZRLMPI, " .. ext_text(extended, tvb)), tvb, extended)
        return tvb:len()
    end
    local h, defect = parse(tvb, 0)
    if defect then return 0 end
    add_header(tree:add(zrlmpi, tvb(), "ZRLMPI, " .. header_text(h)), tvb)
    return tvb:len()
end

local others = {} -- port → the dissector that had it

-- takes_extended reports whether a datagram is interpreted as one of the extended profile. In the middle of a message of
-- another profile, payload may resemble one: then the checksum has to be right.
local function takes_extended(tvb, p)
    if not is_extended(tvb, 0) then return false end
    local flow = flows[p.src .. ">" .. p.dst]
    if not flow or not flow.rx or not soon(p, flow.rx.time) then return true end
    local h, defect = parse_extended(tvb, 0)
    return not defect and h.checksum == ext_checksum(tvb)
end

-- dissect_extended shows the packets of a datagram: with segmentation offload, a sender's own recording has several.
local function dissect_extended(tvb, pinfo, tree)
    local at = 0
    while at < tvb:len() do
        local left = tvb:reported_len() - at
        local h, defect = parse_extended(tvb, at)
        local length, whole = left, h and EXT_HEADER_LEN + h.payload
        -- What is behind it may not be recorded.
        if not defect and whole < left and (at + whole >= tvb:len() or is_extended(tvb, at + whole)) then length = whole end
        local packet = tvb(at, math.min(length, tvb:len() - at)):tvb()
        show(packet, pinfo, tree, recall(pinfo, packet, function() return judge_extended(packet, length) end))
        at = at + length
    end
    return tvb:len()
end

-- dissect_segments shows the datagrams of a frame: with segmentation offload, a sender's own recording has several in one
-- piece, of which all but the last have the greatest length. No rank sends a longer one, but for an MPE's last of a message.
local function dissect_segments(tvb, pinfo, tree, p)
    local total, length = tvb:reported_len(), zrlmpi.prefs.max_datagram
    if length <= HEADER_LEN or total == length + LINE_LEN then length = total end
    for at = 0, tvb:len() - 1, length do
        local n = math.min(length, total - at)
        local datagram = total <= length and tvb or tvb(at, math.min(n, tvb:len() - at)):tvb()
        show(datagram, pinfo, tree, recall(pinfo, datagram, function() return judge_datagram(p, datagram, n) end))
    end
end

local function dissect_datagram(tvb, pinfo, tree)
    local p = place(pinfo, false)
    local key = tvb:offset() .. ":ext"
    local frame = entry(judged, pinfo.number)
    if frame[key] == nil then frame[key] = takes_extended(tvb, p) end
    if frame[key] then return dissect_extended(tvb, pinfo, tree) end
    -- The ports behind the first belong to others as well.
    if pinfo.src_port ~= FIRST_PORT and pinfo.dst_port ~= FIRST_PORT and not flows[p.src .. ">" .. p.dst]
        and not flows[p.dst .. ">" .. p.src] and select(2, parse(tvb, 0)) then
        local other = others[pinfo.dst_port] or others[pinfo.src_port]
        return other and other:call(tvb, pinfo, tree) or 0
    end
    dissect_segments(tvb, pinfo, tree, p)
    return tvb:len()
end

local function dissect_stream(tvb, pinfo, tree)
    local p = place(pinfo, true)
    local at = 0
    while at < tvb:len() do
        local have = tvb:len() - at
        local may_begin = MARK:sub(1, have) == tvb:raw(at, math.min(have, 4))
        if have < HEADER_LEN and may_begin and pinfo.can_desegment > 0 then
            -- Not HEADER_LEN - have: TCP does not extend a packet twice within one segment, and the payload is to follow.
            pinfo.desegment_offset, pinfo.desegment_len = at, DESEGMENT_ONE_MORE_SEGMENT
            return tvb:len()
        end
        local extended = is_extended(tvb, at)
        local needed = extended and EXT_HEADER_LEN or HEADER_LEN
        if extended and have < needed and pinfo.can_desegment > 0 then
            pinfo.desegment_offset, pinfo.desegment_len = at, DESEGMENT_ONE_MORE_SEGMENT
            return tvb:len()
        end
        local h, defect, text = (extended and parse_extended or parse)(tvb, at)
        if extended and not defect and h.payload > EXT_MAX_STREAM_PAYLOAD then
            defect = "bad_header"
        end
        if not extended and not defect and h.type == DATA and h.size > MAX_STREAM_WORDS then
            defect, text = "bad_header", string.format("a message of %d words", h.size)
        end
        local length = HEADER_LEN
        if defect then
            length = have -- behind it headers cannot be found
        elseif extended then
            length = EXT_HEADER_LEN + h.payload
        elseif h.type == DATA then
            length = HEADER_LEN + h.size * WORD_LEN
        end
        if length > have then
            if pinfo.can_desegment > 0 then
                pinfo.desegment_offset = at
                pinfo.desegment_len = math.min(length - have, 0x0ffffff0) -- numbers above have a meaning of their own
                return tvb:len()
            end
            length = have
        end
        local packet = tvb(at, length):tvb()
        show(packet, pinfo, tree, recall(pinfo, packet, function()
            if extended then return judge_extended(packet, length) end
            return judge_stream_packet(p, packet, h, defect, text)
        end))
        at = at + length
    end
    return tvb:len()
end

local PT_TCP = 2
function zrlmpi.dissector(tvb, pinfo, tree)
    if tvb:len() == 0 then return 0 end
    if pinfo.in_error_pkt then return dissect_quoted(tvb, pinfo, tree) end
    if pinfo.port_type == PT_TCP then return dissect_stream(tvb, pinfo, tree) end
    return dissect_datagram(tvb, pinfo, tree)
end

---------------------------------------------------------------------------------------------------------- Registration

zrlmpi:register_heuristic("udp", function(tvb, pinfo, tree)
    local extended = is_extended(tvb, 0) and not select(2, parse_extended(tvb, 0))
    if not extended and select(2, parse(tvb, 0)) then return false end
    if not pinfo.in_error_pkt then pinfo.conversation = zrlmpi end -- the continuation datagrams have nothing to be known by
    return zrlmpi.dissector(tvb, pinfo, tree) > 0
end)

local udp, tcp = DissectorTable.get("udp.port"), DissectorTable.get("tcp.port")
for port = FIRST_PORT, LAST_PORT do
    others[port] = udp:get_dissector(port)
    udp:add(port, zrlmpi)
end
tcp:add(FIRST_PORT, zrlmpi)
tcp:add_for_decode_as(zrlmpi)
