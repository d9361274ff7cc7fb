-- Wireshark dissector for ZRLMPI, the message passing protocol of cloudFPGA clusters.
--
-- Only the first datagram of a DATA message has a header. The meaning of its continuation datagrams depends on the
-- earlier packets between the same two sockets, and on nothing else. Every frame is therefore judged once, on the first
-- pass and in order (section "Judging"). The result is stored by frame number, and displaying a frame later only looks
-- it up.
--
-- D8, P7 and so on are rules of docs/ZRLMPI_protocol.md.

local zrlmpi = Proto("zrlmpi", "ZRLMPI")

local HEADER_LEN, WORD_LEN, LINE_LEN = 32, 4, 8
local EXT_HEADER_LEN, EXT_VERSION, EXT_MAX_STREAM_PAYLOAD = 80, 0xE2, 32768 -- E1
local ACK_LEN, RANGE_LEN, MAX_RANGES = 12, 8, 32 -- E25
local MARK = "\x96\x96\x96\x96"
local FIRST_PORT, LAST_PORT = 2718, 2845 -- A3: at most 128 CPU ranks share an address
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
    ext_question = ProtoField.uint32("zrlmpi.ext.question", "Question", base.DEC, nil, nil, "Asks for a report on the waiting operations"),
    ext_report = ProtoField.uint32("zrlmpi.ext.report", "Report", base.DEC, nil, nil, "The question that it answers"),
    ext_code = ProtoField.uint32("zrlmpi.ext.code", "Error code", base.DEC, CODES),
    ext_length = ProtoField.uint32("zrlmpi.ext.length", "Length of the message", base.DEC, nil, nil,
        "In bytes; in CLEAR_TO_SEND, the number that the receiver accepts"),
    ext_offset = ProtoField.uint32("zrlmpi.ext.offset", "Offset in the message", base.DEC, nil, nil, "In bytes"),
    ext_clock = ProtoField.uint32("zrlmpi.ext.clock", "Clock", base.DEC, nil, nil, "Of the sender; in ACK, of the packet that it answers"),
    ext_message_limit = ProtoField.uint32("zrlmpi.ext.message_limit", "Message limit", base.DEC, nil, nil,
        "First message that may not be sent yet"),
    ext_eager_limit = ProtoField.uint32("zrlmpi.ext.eager_limit", "Eager limit", base.DEC, nil, nil,
        "Total number of eager bytes that may be sent"),
    ext_delay = ProtoField.uint32("zrlmpi.ext.delay", "Delay of the acknowledgement", base.DEC, nil, nil, "In microseconds"),
    ext_range_first = ProtoField.uint32("zrlmpi.ext.range.first", "First packet received beyond a gap"),
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
local judged       -- frame number → judgement of the first packet in the frame; for a plain datagram, DATA
local offsets      -- frame number → offset of a plain datagram in its message
local times        -- frame number → time in seconds
local keys         -- frame number → position of that packet in the frame
local judged_later -- frame number → position in the frame → judgement, of packets after the first
local payload_only -- frame number → offset → true, for payload that resembles the extended profile
local sockets      -- address → port → socket
local flows        -- source address → destination address → ports → flow
local messages     -- number of messages
local display_asked, display_wanted -- time of the last check whether the display is wanted, and its result
local start, shift -- times of the first frame and of the last time reference: see locate

-- Preferences. Reading one takes as long as looking up a flow, and a change restarts the first pass.
local max_datagram, max_gap, is_v09, checks_checksum
local dissector -- this dissector as a Wireshark object

function zrlmpi.init()
    judged, offsets, times, keys, judged_later, payload_only = {}, {}, {}, {}, {}, {}
    sockets, flows, messages, display_asked = {}, {}, 0, nil
    start, shift = nil, 0
    local prefs = zrlmpi.prefs
    max_datagram, max_gap = prefs.max_datagram, prefs.gap / 1000
    is_v09, checks_checksum = prefs.profile == V09, prefs.checksum
    dissector = dissector or Dissector.get("zrlmpi")
end

---------------------------------------------------------------------------------------------------------------- Header

-- The following functions work on strings, and on a position `at` of a buffer from which `have` bytes were recorded. A
-- Wireshark object for each field or part of the buffer would take ten times as long.

local byte, sub, tostring, time = string.byte, string.sub, tostring, os.time
-- tvb:raw needs an additional lookup.
local raw, length, reported_length, position = Tvb.raw, Tvb.len, Tvb.reported_len, Tvb.offset

-- head returns the bytes of a header, as far as they were recorded.
local function head(tvb, at, have) return raw(tvb, at, have < HEADER_LEN and have or HEADER_LEN) end

-- may_be_marked reports whether a buffer may have the start mark at a position. It reads only the first byte, as
-- reading more would create a new string for each datagram of payload.
local function may_be_marked(tvb, at) return raw(tvb, at, 1) == "\x96" end

-- begins reports whether bytes have the start mark.
local function begins(bytes) return byte(bytes) == 0x96 and sub(bytes, 1, 4) == MARK end

-- marked reports whether the bytes have one of the marks, and were thus meant to be a header.
local function marked(bytes)
    return bytes:sub(1, 4) == MARK or bytes:sub(29, 32) == MARK
end

-- wrong_byte describes the first of the bytes from..to of a header that differs from the one wanted.
local function wrong_byte(bytes, from, to, want, rule)
    for i = from, to do
        local b = byte(bytes, i + 1)
        if b ~= want then return string.format("byte %d is 0x%02x, but %s", i, b, rule) end
    end
end

local function uint32(bytes, at)
    local b0, b1, b2, b3 = byte(bytes, at + 1, at + 4)
    return b0 + 256 * (b1 + 256 * (b2 + 256 * b3))
end

local header = {}

-- parse returns the header in some bytes, valid until the next call, and its defect, checked in the order of H12: the
-- name of an expert field, and a description.
local function parse(bytes, have)
    if have < HEADER_LEN then
        return nil, "bad_header", string.format("%d bytes, but a header has %d", have, HEADER_LEN)
    end
    local a0, a1, a2, a3, d0, d1, d2, d3, s0, s1, s2, s3, n0, n1, n2, n3, call, kind, tag,
        r0, r1, r2, r3, r4, r5, r6, r7, r8, z0, z1, z2, z3 = byte(bytes, 1, HEADER_LEN)
    local h = header
    h.dst = d0 + 256 * (d1 + 256 * (d2 + 256 * d3))
    h.src = s0 + 256 * (s1 + 256 * (s2 + 256 * s3))
    h.size = n0 + 256 * (n1 + 256 * (n2 + 256 * n3))
    h.call, h.type, h.tag = call, kind, tag
    if a0 ~= 0x96 or a1 ~= 0x96 or a2 ~= 0x96 or a3 ~= 0x96
        or z0 ~= 0x96 or z1 ~= 0x96 or z2 ~= 0x96 or z3 ~= 0x96 then
        return h, "bad_header", wrong_byte(bytes, 0, 3, 0x96, "the start mark is 0x96")
            or wrong_byte(bytes, 28, 31, 0x96, "the end mark is 0x96")
    end
    if r0 + r1 + r2 + r3 + r4 + r5 + r6 + r7 + r8 > 0 or tag > 0 and not is_v09 then
        return h, "reserved_byte",
            wrong_byte(bytes, is_v09 and 19 or 18, 27, 0, "must be 0: deployed nodes drop the packet silently")
    elseif not CALLS[call] then
        return h, "bad_header", string.format("byte 16 is 0x%02x, but the calls are 0 to 4", call)
    elseif not TYPES[kind] then
        return h, "bad_header", string.format("byte 17 is 0x%02x, but the packet types are 1 to 5", kind)
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

-- is_extended reports whether bytes begin a packet of the extended profile: no other packet has bit 7 of byte 19 set.
local function is_extended(bytes)
    local version, flags = byte(bytes, 19, 20)
    return version == EXT_VERSION and flags and flags >= 0x80 and begins(bytes)
end

-- CRC-32C, 16 bytes at a time: calls of Wireshark's bit library, whose numbers are signed, are slow. slices[n][b] is
-- the checksum of byte b followed by n zeros.
local slices

local function make_slices()
    local band, bxor, rshift = bit.band, bit.bxor, bit.rshift
    slices = { [0] = {} }
    for b = 0, 255 do
        local c = b
        for _ = 1, 8 do c = bxor(rshift(c, 1), c % 2 == 1 and 0x82F63B78 or 0) end
        slices[0][b] = c
    end
    for n = 1, 15 do
        slices[n] = {}
        for b = 0, 255 do
            local c = slices[n - 1][b]
            slices[n][b] = bxor(rshift(c, 8), slices[0][band(c, 0xff)])
        end
    end
end

local function crc32c(bytes)
    if not slices then make_slices() end
    local bxor, floor = bit.bxor, math.floor
    local t0, t1, t2, t3, t4, t5, t6, t7 =
        slices[0], slices[1], slices[2], slices[3], slices[4], slices[5], slices[6], slices[7]
    local t8, t9, t10, t11, t12, t13, t14, t15 =
        slices[8], slices[9], slices[10], slices[11], slices[12], slices[13], slices[14], slices[15]
    local c, whole = -1, #bytes - #bytes % 16
    for at = 1, whole, 16 do
        local b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15 = byte(bytes, at, at + 15)
        local c0 = c % 256
        local rest = (c - c0) / 256
        local c1 = rest % 256
        rest = (rest - c1) / 256
        local c2 = rest % 256
        c = bxor(t15[c0], t14[c1], t13[c2], t12[(rest - c2) / 256 % 256],
            t15[b0], t14[b1], t13[b2], t12[b3], t11[b4], t10[b5], t9[b6], t8[b7],
            t7[b8], t6[b9], t5[b10], t4[b11], t3[b12], t2[b13], t1[b14], t0[b15])
    end
    for at = whole + 1, #bytes do
        c = bxor(floor(c % 2^32 / 256), t0[c % 256], t0[byte(bytes, at)])
    end
    return bit.bnot(c) % 2^32
end

-- ext_checksum returns the checksum of a whole packet, or with flag PLAIN of its header (E43).
local function ext_checksum(bytes)
    local last = bit.band(byte(bytes, 20), 0x20) ~= 0 and EXT_HEADER_LEN or #bytes
    return crc32c(bytes:sub(1, 24) .. "\0\0\0\0" .. bytes:sub(29, last))
end

-- parse_extended returns the header at a position in a buffer, and its defect, like parse. It checks in the order of
-- E2, except for length and checksum.
local function parse_extended(tvb, at, have)
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

-- question and report report whether a packet requests a report, or has a part of one.
local function question(h) return h.type == ACK and h.tag ~= 0 and ext_flag(h, 4) end
local function report(h) return h.type == ACK and h.tag ~= 0 and not ext_flag(h, 4) end

-- ack_ranges returns the number of ranges in the payload of an ACK, or nil for other packets.
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

-- p is the packet being dissected: number and time of its frame, tcp, and its flow.
--
-- A judgement j of a datagram or stream packet has message, notes or nil, and where applicable request_in, clear_in,
-- frame and the times in seconds; for payload also data, offset, bytes, and padding if there is any.
--
-- A socket has name, ip, rank = the first rank that sent from it, and sources = by rank, the address from which that
-- rank first sent to the socket. A flow, one direction between two sockets, has from, to, back = the opposite
-- direction, rx = DATA being received, pair = the pair whose messages it carries, pairs = by ranks, and talks = it has
-- carried ZRLMPI. On TCP a rank has a separate address (C3) and another port for each connection: the port does not
-- matter.
--
-- A pair of ranks has src, dst, cur = message, prev = the previous one, stale = unused CLEAR_TO_SEND, acks = number of
-- ACKs, and back_acks = acks of the opposite pair at the last SEND_REQUEST. A message has the number of the frame of
-- each of its packets; asked and cleared are frames of the last retransmission. Its data describes the payload: number
-- and last are the frames of its first and last datagram.

local function note(j, name, text, ...)
    if not j.notes then j.notes = {} end
    j.notes[#j.notes + 1] = { name, string.format(text, ...) }
end

local function entry(of, key)
    local value = of[key]
    if not value then
        value = {}
        of[key] = value
    end
    return value
end

local function socket(ip, port)
    local ports = entry(sockets, ip)
    if not ports[port] then
        ports[port] = { ip = ip, name = port == "tcp" and ip or ip .. " port " .. port, sources = {} }
    end
    return ports[port]
end

local p = {}

-- locate sets p.
local function locate(pinfo, tcp)
    local src, dst = tostring(pinfo.src), tostring(pinfo.dst)
    local from, to, ports, back = "tcp", "tcp", "tcp", "tcp"
    if not tcp then
        from, to = pinfo.src_port, pinfo.dst_port
        ports, back = from * 65536 + to, to * 65536 + from
    end
    local between = flows[src] and flows[src][dst]
    local flow = between and between[ports]
    if not flow then
        between = entry(entry(flows, src), dst)
        flow = { from = socket(src, from), to = socket(dst, to), pairs = {} }
        between[ports] = flow
        local reverse = entry(entry(flows, dst), src)
        flow.back = reverse[back] or { from = flow.to, to = flow.from, pairs = {}, back = flow }
        reverse[back] = flow.back
    end
    -- Absolute times are rounded to a fraction of a microsecond. Relative times are exact, but restart where the user
    -- has set a time reference: shift is its time.
    local rel = pinfo.rel_ts
    local reference = pinfo.abs_ts - rel
    start = start or reference
    local error = reference - start - shift
    if error > 1e-5 or error < -1e-5 then shift = reference - start end
    local number = pinfo.number
    times[number] = rel + shift
    p.number, p.time, p.tcp, p.flow, p.visited = number, rel + shift, tcp, flow, judged[number] ~= nil
end

-- since returns the seconds from an earlier frame to p.
local function since(frame) return p.time - times[frame] end

local function soon(frame)
    return not p.tcp and frame and p.time - times[frame] < max_gap
end

local function pair_of(flow, src_rank, dst_rank)
    local pairs_of_source = flow.pairs[src_rank]
    local pair = pairs_of_source and pairs_of_source[dst_rank]
    if not pair then
        pair = entry(entry(flow.pairs, src_rank), dst_rank)
        pair.src, pair.dst, pair.acks = src_rank, dst_rank, 0
    end
    return pair
end

local function open_message(pair, h)
    messages = messages + 1
    if pair.prev and pair.prev.data then pair.prev.data.first = nil end -- keep messages forever, but not their bytes
    if pair.cur then pair.prev = pair.cur end
    -- Large captures have many messages. Most have 8 fields: preallocate them to avoid growing the table in steps.
    pair.cur = {
        id = messages, call = h.call, tag = h.tag, number = nil, request = nil, clear = nil, data = nil, ack = nil,
    }
    return pair.cur
end

-- is_complete reports whether all payload of DATA was recorded.
local function is_complete(data) return data.got >= data.total and not data.unfit end

-- in_progress reports whether the sender may not be done with the message. The receiver has acknowledged a complete
-- message, even if the ACK was not recorded.
local function in_progress(m)
    return m and not (m.ack or m.ended or m.data and is_complete(m.data))
end

-- again notes a packet seen before. It is a duplicate if it arrives sooner than any timeout, unless the sender had
-- another reason to send it immediately. earlier is the frame that its timeout counts from, and begin is the first
-- frame of the earlier packet, or nil if it has only one.
local function again(j, what, earlier, has_reason, begin)
    local name, how = "retransmitted_packet", "retransmitted"
    if not has_reason and soon(earlier) then name, how = "duplicate_packet", "delivered twice" end
    note(j, name, "%s was %s, %.6f s after frame %d", what, how, since(earlier), begin or earlier)
end

local function compare_call(j, m, h, want)
    if h.call ~= want and h.call ~= BARRIER then
        note(j, "datatype_mismatch", "%s where %s is expected: INT never matches FLOAT", CALLS[h.call], CALLS[want])
    end
    if is_v09 and h.tag ~= m.tag then
        note(j, "datatype_mismatch", "tag %d where %d is expected", h.tag, m.tag)
    end
end

local function on_request(j, h)
    local flow = p.flow
    local pair, reverse = pair_of(flow, h.src, h.dst), pair_of(flow.back, h.dst, h.src)
    local m = pair.cur
    flow.pair = pair
    -- A sender does not repeat its request once it sends DATA: a later one than a duplicate means that it has aborted.
    if in_progress(m) and m.reopened then
        j.request_in, m.reopened = m.request, nil
        m.asked = p.number
    elseif in_progress(m) and m.request and h.size <= m.number and (not m.data or soon(m.data.last)) then
        -- A crossed request is retransmitted right after the peer's message (P3): it is no duplicate.
        again(j, "SEND_REQUEST", m.asked or m.request, pair.back_acks ~= reverse.acks)
        j.request_in = m.request
        m.asked = p.number
    else
        m = open_message(pair, h)
        m.request, m.number = p.number, h.size
        flow.rx = nil
        local other = reverse.cur
        if in_progress(other) and other.request and not other.clear and not other.data then
            note(j, "crossed_requests", "the SEND_REQUEST of rank %d in frame %d is not answered yet: both ask to send",
                h.dst, other.request)
        end
    end
    pair.back_acks = reverse.acks
    m.call, m.tag = h.call, h.tag
    j.message = m
end

local function on_clear(j, h)
    local sends = p.flow.back
    local pair = pair_of(sends, h.dst, h.src)
    local m = pair.cur
    sends.pair = pair
    if not m or m.ack or m.ended then
        note(j, "stale_header", "CLEAR_TO_SEND answers no SEND_REQUEST that was recorded")
        pair.stale = p.number
        return
    end
    j.message = m
    if m.request then
        j.request_in = m.request
        j.time_clear = since(m.request)
    end
    compare_call(j, m, h, COUNTERPART[m.call])
    if m.clear then
        again(j, "CLEAR_TO_SEND", m.cleared or m.clear)
        m.cleared = p.number
        return
    elseif m.data then
        note(j, "stale_header", "CLEAR_TO_SEND for DATA that is being sent already, since frame %d", m.data.number)
    end
    m.clear = p.number
end

-- length_fits checks D9 for n bytes of payload at an offset of a message; `have` of them were recorded, at a position
-- of tvb.
local function length_fits(offset, total, n, tvb, at, have)
    local full = max_datagram - (offset == 0 and HEADER_LEN or 0)
    local left = total - offset
    if n < left then return n == full end
    if n > full + LINE_LEN then return false end
    if n == left then return true end
    if total == 0 then return n <= LINE_LEN end -- an FPGA pads an empty message with nonzero bytes
    if n - left > LINE_LEN - WORD_LEN then return false end
    return left >= have or not tvb:raw(at + left, have - left):find("[^%z]")
end

-- skips reports whether n bytes of payload end a message with left bytes to come, if full datagrams are missing.
local function skips(left, n)
    local full = max_datagram
    if full == 0 or n == 0 or n >= left or n == full or n > full + LINE_LEN then return false end
    return (left - n) % full == 0 or (left + -left % LINE_LEN - n) % full == 0
end

-- take adds n bytes of payload to the message that a flow is receiving.
local function take(j, n)
    local flow = p.flow
    local data = flow.rx
    local left = data.total - data.got
    j.data, j.offset, j.bytes = data, data.got, n < left and n or left
    if n > left then
        j.padding = n - left
        note(j, "padding", "%d bytes of padding, as FPGAs send", j.padding)
    end
    data.got, data.last = data.got + j.bytes, p.number
    if n >= left then flow.rx = nil end
end

-- same_data reports whether DATA retransmits the DATA of a message; on a stream, only call and size are compared (C8).
local function same_data(m, h, first)
    return m and m.data and m.data.total == h.size * WORD_LEN and m.data.call == h.call and m.data.first == first
end

local function on_data(j, h, tvb, at, have, n)
    local flow = p.flow
    local pair = pair_of(flow, h.src, h.dst)
    local m, total = pair.cur, h.size * WORD_LEN
    flow.pair = pair
    -- D8 compares a checksum; here the bytes themselves are available.
    local first = ""
    if not p.tcp and have > HEADER_LEN then first = raw(tvb, at + HEADER_LEN, have - HEADER_LEN) end
    local unsolicited
    if same_data(m, h, first) then
        again(j, "DATA", m.data.last, false, m.data.number)
    elseif not m or m.data or m.ack or m.ended then
        m = open_message(pair, h)
        unsolicited = true
    elseif not m.clear then
        unsolicited = true
    elseif m.unexpected and not soon(m.unexpected) then
        again(j, "DATA", m.unexpected)
    end
    if unsolicited and pair.stale then
        m.clear, pair.stale = pair.stale, nil -- P7
    elseif unsolicited then
        note(j, "unsolicited_data", "no CLEAR_TO_SEND was recorded for this DATA")
    end
    compare_call(j, m, h, m.call)
    j.request_in = m.request
    if m.clear then
        local cleared = m.cleared or m.clear
        j.clear_in, j.time_data = cleared, since(cleared)
    end
    j.message = m
    local data = {
        message = m, pair = pair, number = p.number, last = p.number, call = h.call, first = first, total = total,
        got = 0,
    }
    m.data = data
    if not p.tcp and not length_fits(0, total, n, tvb, at + HEADER_LEN, have - HEADER_LEN) then
        note(j, "size_mismatch", "%d bytes of payload do not fit the first datagram of a message of %d", n, total)
        data.unfit, flow.rx = true, nil
        return
    end
    flow.rx = data
    take(j, n)
end

local function on_ack(j, h)
    local pair = pair_of(p.flow.back, h.dst, h.src)
    local m, prev = pair.cur, pair.prev
    -- An ACK after the next SEND_REQUEST may belong to the previous message.
    if m and not m.data and not m.clear and prev and prev.data then m = prev end
    if not m or not m.data then
        if m and m.clear then m.ack, j.message = p.number, m end
        if not m or not m.unexpected then note(j, "stale_header", "ACK answers no DATA that was recorded") end
        return
    end
    local data_again = m.ack and m.data.number > m.ack
    if m.ack and not data_again and not soon(m.ack) then
        note(j, "stale_header", "ACK answers nothing: the message was acknowledged in frame %d", m.ack)
        return
    end
    if m.ack then again(j, "ACK", m.ack, data_again) end
    j.message, j.frame, j.time_ack = m, m.data.number, since(m.data.last)
    j.request_in = m.request
    if not is_complete(m.data) and not m.data.unfit then
        note(j, "size_mismatch", "acknowledged, but only %d of %d bytes were recorded", m.data.got, m.data.total)
    end
    compare_call(j, m, h, COUNTERPART[m.call])
    m.ack = p.number
    pair.acks = pair.acks + 1
end

-- on_error ends the send of the rank that receives the ERROR, or else its receive (P12).
local function on_error(j, h)
    note(j, "error_packet", "ERROR: deployed nodes never send it; it ends the operation in progress")
    for _, pair in ipairs({ pair_of(p.flow.back, h.dst, h.src), pair_of(p.flow, h.src, h.dst) }) do
        local m = pair.cur
        if m and not m.ack and not m.ended then
            j.message, m.ended = m, p.number
            return
        end
    end
    note(j, "stale_header", "ERROR answers nothing in progress")
end

-- on_revocation ends the message of a revoked SEND_REQUEST. For a revoked CLEAR_TO_SEND it expects another request of
-- the sender (P28).
local function on_revocation(j, h)
    note(j, "revocation", "revokes %s, number %d", TYPES[h.type], h.size - 1)
    local pair = h.type == SEND_REQUEST and pair_of(p.flow, h.src, h.dst) or pair_of(p.flow.back, h.dst, h.src)
    local m = pair.cur
    if not m or m.ack or m.ended or not m.number or m.number >= h.size then return end -- revoked before
    j.message = m
    if h.type == SEND_REQUEST then
        m.ended = p.number
    else
        m.clear, m.cleared, m.data, m.number, m.reopened = nil, nil, nil, h.size, true
    end
end

-- compare_source checks A5 without a rank map: the first packets define it.
local function compare_source(j, h)
    local from, to = p.flow.from, p.flow.to
    local source = to.sources[h.src]
    if from.rank and from.rank ~= h.src then
        note(j, "wrong_source", "%s speaks for rank %d, but was rank %d before", from.name, h.src, from.rank)
    elseif source and source ~= from.ip then
        note(j, "wrong_source", "rank %d sends from %s, but was at %s before", h.src, from.ip, source)
    end
    if to.rank and to.rank ~= h.dst then
        note(j, "wrong_destination", "addressed to rank %d, but %s is rank %d", h.dst, to.name, to.rank)
    end
    from.rank = from.rank or h.src
    to.sources[h.src] = source or from.ip
end

-- on_packet handles a packet with a valid header and n bytes of payload; `have` bytes of it were recorded, at a
-- position of tvb.
local function on_packet(j, h, tvb, at, have, n)
    if not p.tcp and h.type ~= DATA and n > 0 then
        note(j, "size_mismatch", "a %s of %d bytes is dropped: it must have %d",
            TYPES[h.type], n + HEADER_LEN, HEADER_LEN)
        return
    end
    compare_source(j, h)
    local sends = h.call == 0 or h.call == 2
    if h.call == BARRIER and h.size > 0 and (h.type == SEND_REQUEST or h.type == CLEAR_TO_SEND) then
        on_revocation(j, h)
        return
    elseif h.call == BARRIER then
        note(j, "wrong_call", "BARRIER: no deployed node sends it, and the FPGA drops it")
        return
    elseif h.type ~= ERROR and sends ~= (h.type == SEND_REQUEST or h.type == DATA) then
        note(j, "wrong_call", "%s with %s is dropped: the call is the sender's own operation",
            TYPES[h.type], CALLS[h.call])
        return
    end
    if h.type == SEND_REQUEST then on_request(j, h)
    elseif h.type == CLEAR_TO_SEND then on_clear(j, h)
    elseif h.type == DATA then on_data(j, h, tvb, at, have, n)
    elseif h.type == ACK then on_ack(j, h)
    else on_error(j, h) end
end

-- on_continuation handles a datagram that is no packet within a message: it is payload.
local function on_continuation(j, tvb, at, have, n)
    local flow = p.flow
    local data = flow.rx
    j.message, j.pair = data.message, data.pair
    if not soon(data.last) then
        note(j, "gap", "%.3f s after the datagram before it: the message in frame %d starts over",
            since(data.last), data.number)
        flow.rx = nil
    elseif skips(data.total - data.got, n) then
        note(j, "gap",
            "the last %d bytes come at offset %d of %d, datagrams are missing: the message in frame %d starts over", n,
            data.got, data.total, data.number)
        flow.rx = nil
    elseif not length_fits(data.got, data.total, n, tvb, at, have) then
        note(j, "size_mismatch", "%d bytes do not fit at offset %d of %d: the message in frame %d starts over",
            n, data.got, data.total, data.number)
        flow.rx = nil
    else
        take(j, n)
    end
end

-- on_payload handles a datagram that is no packet while no message expects payload.
local function on_payload(j, bytes, n, defect, text)
    local pair = p.flow.pair
    if not pair or marked(bytes) then
        note(j, defect, "%s", text)
        j.bad = true
        return
    end
    note(j, "unexpected_payload",
        "%d bytes of payload, but no message expects any: the DATA header was lost, or bad", n)
    local m = pair.cur
    if m and not m.ended and (not m.ack or m.data and soon(m.data.last)) then
        j.message = m
        m.unexpected = p.number
    end
end

-- is_packet applies D8 to a datagram of n bytes with a valid header.
local function is_packet(tvb, at, have, n, h)
    local data = p.flow.rx
    if not data then return true end
    if h.src ~= data.pair.src or h.dst ~= data.pair.dst then return false end
    return n == HEADER_LEN and data.total - data.got ~= HEADER_LEN
        or h.type == DATA and h.size * WORD_LEN == data.total and h.call == data.call
            and (have > HEADER_LEN and tvb:raw(at + HEADER_LEN, have - HEADER_LEN) or "") == data.first
        or not soon(data.last) -- the receiver has aborted this message
end

-- plain is the judgement of a plain datagram, the most frequent kind: one after the first of a message that is full or
-- ends the message, without padding. It is valid until the next one.
local plain = {}

-- judge_datagram judges a datagram of n bytes; `have` of them were recorded, at a position of tvb. may_be_header is the
-- result of may_be_marked.
local function judge_datagram(tvb, at, have, n, may_be_header)
    local flow = p.flow
    local data = flow.rx
    flow.talks = true
    if data and n > HEADER_LEN and n <= max_datagram and not may_be_header then
        local got = data.got
        local left = data.total - got
        if (n == left or n == max_datagram and n < left) and got > 0 and p.time - times[data.last] < max_gap then
            plain.data, plain.offset, plain.bytes = data, got, n
            data.got, data.last = got + n, p.number
            if n == left then flow.rx = nil end
            return plain
        end
    end
    local bytes = head(tvb, at, have)
    local h, defect, text = parse(bytes, have)
    -- Preallocate 4 or 8 fields, as for a message.
    local j = h and h.type == DATA and {
        header = nil, request_in = nil, clear_in = nil, time_data = nil, data = nil, offset = nil, bytes = nil,
    } or { header = nil, message = nil, request_in = nil, time_clear = nil }
    if not defect and is_packet(tvb, at, have, n, h) then
        j.header = true
        on_packet(j, h, tvb, at, have, n - HEADER_LEN)
    elseif h and defect and marked(bytes) and (not data or n == HEADER_LEN and data.total - data.got ~= HEADER_LEN) then
        note(j, defect, "%s", text)
        j.header, j.bad = true, true
        -- Later packets show whether this receiver drops it, so it is tracked like a valid one.
        if defect == "reserved_byte" and CALLS[h.call] and TYPES[h.type] then
            on_packet(j, h, tvb, at, have, n - HEADER_LEN)
        end
    elseif data then
        on_continuation(j, tvb, at, have, n)
    else
        on_payload(j, bytes, n, defect, text)
    end
    return j
end

local function judge_stream_packet(tvb, at, have, h, defect, text)
    local j = { header = h ~= nil and marked(head(tvb, at, have)), bad = defect ~= nil }
    if defect then
        note(j, defect, "%s: the stream has lost its framing", text)
    else
        on_packet(j, h, tvb, at, have, h.type == DATA and h.size * WORD_LEN or 0)
    end
    return j
end

-- judge_extended judges one packet of the extended profile of n bytes by itself, without state. `have` bytes of it were
-- recorded, at a position of tvb.
local function judge_extended(tvb, at, have, n)
    local j = { extended = true }
    local h, defect, text = parse_extended(tvb, at, have)
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
    if checks_checksum and have == n then
        local sum = ext_checksum(tvb:raw(at, n))
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

-- key returns a key that distinguishes the packets of a frame, a stream or a tunnel: the position and length of a
-- packet.
local function key(tvb, at, n) return position(tvb) + at + n * 2^24 end

-- recall returns the judgement of a packet of n bytes, or nil the first time; then keep stores it.
local function recall(k, n)
    local number = p.number
    local first = judged[number]
    if not first then return end
    if keys[number] ~= k then
        local later = judged_later[number]
        return later and later[k]
    end
    if not offsets[number] then return first end
    plain.data, plain.offset, plain.bytes = first, offsets[number], n
    return plain
end

local function keep(k, j)
    local number = p.number
    if judged[number] then
        if j == plain then j = { data = j.data, offset = j.offset, bytes = j.bytes } end
        entry(judged_later, number)[k] = j
    else
        keys[number] = k
        if j == plain then
            judged[number], offsets[number] = j.data, j.offset
        else
            judged[number] = j
        end
    end
    return j
end

-------------------------------------------------------------------------------------------------------------- Display

local function generated(tree, field, value)
    if value ~= nil then tree:add(field, value):set_generated(true) end
end

local function add_seconds(tree, field, s)
    if not s then return end
    local full = s < 0 and math.ceil(s) or math.floor(s)
    generated(tree, field, NSTime.new(full, math.floor((s - full) * 1e9 + 0.5)))
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
    if j.data and not j.header then
        local last = j.bytes > 0 and string.format("bytes %d–%d", j.offset, j.offset + j.bytes - 1) or "0 bytes"
        local pair = j.data.pair
        return string.format("DATA continued %d→%d, %s of %d [frame %d]", pair.src, pair.dst, last, j.data.total,
            j.data.number)
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

-- wants_display reports whether columns or fields of a frame are wanted, which is slow to check. In the first pass,
-- they are wanted for all frames or for none, unless a window that wants them is opened during a capture. So show
-- checks once a second.
local function wants_display(pinfo, tree)
    -- Without columns, the text of a column is its name.
    local wanted = tostring(pinfo.cols.info) ~= "(info)" or tree:referenced(dissector)
    if not p.visited then display_asked, display_wanted = time(), wanted end
    return wanted
end

-- show displays one judged packet, of which `have` bytes were recorded at a position of tvb.
local function show(tvb, at, have, pinfo, tree, j)
    local wanted = display_wanted
    if p.visited or time() ~= display_asked then wanted = wants_display(pinfo, tree) end
    if not wanted then
        if j.notes then
            local sub = tree:add(zrlmpi, tvb(at, have))
            for _, n in ipairs(j.notes) do sub:add_proto_expert_info(E[n[1]], n[2]) end
        end
        return
    end
    if at > 0 or have < length(tvb) then tvb = tvb(at, have):tvb() end
    local h = j.header and parse(head(tvb, 0, have), have) or nil
    local extended = j.extended and parse_extended(tvb, 0, have)
    local text
    if extended then
        text = (j.bad and "Bad packet: " or "") .. ext_text(extended, tvb)
    elseif j.extended then
        text = "Bad packet: " .. j.notes[1][2]
    else
        text = summary(j, h, tvb:reported_len())
    end
    -- The first of several packets in a frame replaces the text of the lower layer.
    if pinfo.private.zrlmpi then
        pinfo.cols.info:append("; " .. text)
    else
        pinfo.cols.protocol = "ZRLMPI"
        pinfo.cols.info = text
    end
    pinfo.cols.info:fence()
    pinfo.private.zrlmpi = "1"

    local sub = tree:add(zrlmpi, tvb(), "ZRLMPI, " .. text)
    local start = 0
    if extended then
        add_extended(sub, tvb, extended)
        start = have
    elseif j.header then
        add_header(sub, tvb)
        start = HEADER_LEN
    elseif j.pair or j.data then
        local pair = j.pair or j.data.pair
        generated(sub, F.dst_rank, pair.dst)
        generated(sub, F.src_rank, pair.src)
    end
    local data = j.data
    if data then
        generated(sub, F.offset, UInt64.new(j.offset % 2^32, math.floor(j.offset / 2^32)))
        generated(sub, F.bytes, j.bytes)
        generated(sub, F.padding, j.padding or 0)
        generated(sub, F.total, UInt64.new(data.total % 2^32, math.floor(data.total / 2^32)))
        generated(sub, F.complete, j.offset + j.bytes >= data.total)
    end
    generated(sub, F.frame, data and data.number or j.frame)
    local m = j.message or data and data.message
    if m then
        generated(sub, F.message, m.id)
        generated(sub, F.request_in, j.request_in)
        -- Later packets are known when the frame is displayed again.
        local asks = h and h.type == SEND_REQUEST
        generated(sub, F.clear_in, j.clear_in or asks and m.clear or nil)
        if (asks or data) and m.ack then generated(sub, F.ack_in, m.ack) end
        add_seconds(sub, F.time_clear, j.time_clear)
        add_seconds(sub, F.time_data, j.time_data)
        add_seconds(sub, F.time_ack, j.time_ack)
    end
    local payload = math.min(j.bytes or have, have - start)
    if payload > 0 then sub:add(F.payload, tvb(start, payload)) end
    for _, n in ipairs(j.notes or {}) do sub:add_proto_expert_info(E[n[1]], n[2]) end
end

-- dissect_quoted shows a packet quoted in an ICMP error. It was sent earlier, and changes no state.
local function dissect_quoted(tvb, tree)
    local have = tvb:len()
    local bytes = head(tvb, 0, have)
    if is_extended(bytes) then
        local extended, defect = parse_extended(tvb, 0, have)
        if not defect then
            add_extended(tree:add(zrlmpi, tvb(), "ZRLMPI, " .. ext_text(extended, tvb)), tvb, extended)
            return have
        end
    end
    local h, defect = parse(bytes, have)
    if defect then return 0 end
    add_header(tree:add(zrlmpi, tvb(), "ZRLMPI, " .. header_text(h)), tvb)
    return have
end

local others = {} -- port → previous dissector

-- takes_extended reports whether a datagram that resembles the extended profile is interpreted as such. Within a
-- message of another profile, payload may resemble it: then the checksum has to be correct.
local function takes_extended(tvb, visited)
    local at = tvb:offset()
    local payload = payload_only[p.number]
    if payload and payload[at] then return false end
    local data = p.flow.rx
    if visited or not data or not soon(data.last) then return true end
    local h, defect = parse_extended(tvb, 0, tvb:len())
    if not defect and h.checksum == ext_checksum(tvb:raw()) then return true end
    entry(payload_only, p.number)[at] = true
    return false
end

-- dissect_extended shows the packets of a datagram. With segmentation offload, a recording made by the sender has
-- several.
local function dissect_extended(tvb, pinfo, tree)
    local at, len, total = 0, tvb:len(), tvb:reported_len()
    while at < len do
        local n = total - at
        local h, defect = parse_extended(tvb, at, len - at)
        local size = h and EXT_HEADER_LEN + h.payload
        -- The packets that follow may not be recorded.
        if not defect and size < n and (at + size >= len or is_extended(head(tvb, at + size, len - at - size))) then
            n = size
        end
        local have, k = math.min(n, len - at), key(tvb, at, n)
        show(tvb, at, have, pinfo, tree, p.visited and recall(k, n) or keep(k, judge_extended(tvb, at, have, n)))
        at = at + n
    end
    return len
end

-- dissect_segments shows the datagrams of a frame. With segmentation offload, a recording made by the sender has
-- several in one frame, of which all but the last have the maximum length. No rank sends longer ones, except for the
-- last datagram of an MPE's message.
local function dissect_segments(tvb, pinfo, tree, len, may_be_header)
    local total, most = reported_length(tvb), max_datagram
    if most <= HEADER_LEN or total <= most or total == most + LINE_LEN then most = total end
    for at = 0, len - 1, most do
        local n = at + most < total and most or total - at
        local have = at + n < len and n or len - at
        local k = key(tvb, at, n)
        if at > 0 then may_be_header = may_be_marked(tvb, at) end
        show(tvb, at, have, pinfo, tree,
            p.visited and recall(k, n) or keep(k, judge_datagram(tvb, at, have, n, may_be_header)))
    end
    return len
end

local function dissect_datagram(tvb, pinfo, tree, len)
    locate(pinfo, false)
    local may_be_header = may_be_marked(tvb, 0)
    if may_be_header and is_extended(head(tvb, 0, len)) and takes_extended(tvb, pinfo.visited) then
        return dissect_extended(tvb, pinfo, tree)
    end
    -- All ports but the first are also used by other protocols.
    if not p.flow.talks and not p.flow.back.talks and pinfo.src_port ~= FIRST_PORT and pinfo.dst_port ~= FIRST_PORT
        and select(2, parse(head(tvb, 0, len), len)) then
        local other = others[pinfo.dst_port] or others[pinfo.src_port]
        return other and other:call(tvb, pinfo, tree) or 0
    end
    return dissect_segments(tvb, pinfo, tree, len, may_be_header)
end

local function dissect_stream(tvb, pinfo, tree)
    locate(pinfo, true)
    local at, len = 0, tvb:len()
    while at < len do
        local have = len - at
        local bytes = head(tvb, at, have)
        local may_begin = MARK:sub(1, have) == bytes:sub(1, 4)
        local extended = is_extended(bytes)
        if (have < HEADER_LEN and may_begin or extended and have < EXT_HEADER_LEN) and pinfo.can_desegment > 0 then
            -- Not HEADER_LEN - have: TCP does not extend a packet twice within one segment, and the payload follows.
            pinfo.desegment_offset, pinfo.desegment_len = at, DESEGMENT_ONE_MORE_SEGMENT
            return len
        end
        local h, defect, text
        if extended then
            h, defect, text = parse_extended(tvb, at, have)
        else
            h, defect, text = parse(bytes, have)
        end
        if extended and not defect and h.payload > EXT_MAX_STREAM_PAYLOAD then
            defect = "bad_header"
        end
        if not extended and not defect and h.type == DATA and h.size > MAX_STREAM_WORDS then
            defect, text = "bad_header", string.format("a message of %d words", h.size)
        end
        local length = HEADER_LEN
        if defect then
            length = have -- no header can be found after it
        elseif extended then
            length = EXT_HEADER_LEN + h.payload
        elseif h.type == DATA then
            length = HEADER_LEN + h.size * WORD_LEN
        end
        if length > have then
            if pinfo.can_desegment > 0 then
                pinfo.desegment_offset = at
                pinfo.desegment_len = math.min(length - have, 0x0ffffff0) -- greater numbers have a special meaning
                return len
            end
            length = have
        end
        local k = key(tvb, at, length)
        local j = p.visited and recall(k, length)
        if not j then
            j = keep(k, extended and judge_extended(tvb, at, length, length)
                or judge_stream_packet(tvb, at, length, h, defect, text))
        end
        show(tvb, at, length, pinfo, tree, j)
        at = at + length
    end
    return len
end

local PT_TCP = 2
function zrlmpi.dissector(tvb, pinfo, tree)
    local len = length(tvb)
    if len == 0 then return 0 end
    if pinfo.in_error_pkt then return dissect_quoted(tvb, tree) end
    if pinfo.port_type == PT_TCP then return dissect_stream(tvb, pinfo, tree) end
    return dissect_datagram(tvb, pinfo, tree, len)
end

---------------------------------------------------------------------------------------------------------- Registration

zrlmpi:register_heuristic("udp", function(tvb, pinfo, tree)
    local have = tvb:len()
    local bytes = head(tvb, 0, have)
    local extended = is_extended(bytes) and not select(2, parse_extended(tvb, 0, have))
    if not extended and select(2, parse(bytes, have)) then return false end
    if not pinfo.in_error_pkt then pinfo.conversation = zrlmpi end -- continuation datagrams cannot be recognized
    return zrlmpi.dissector(tvb, pinfo, tree) > 0
end)

local udp, tcp = DissectorTable.get("udp.port"), DissectorTable.get("tcp.port")
for port = FIRST_PORT, LAST_PORT do
    others[port] = udp:get_dissector(port)
    udp:add(port, zrlmpi)
end
tcp:add(FIRST_PORT, zrlmpi)
tcp:add_for_decode_as(zrlmpi)
