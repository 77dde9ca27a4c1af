"""OpenFlow messages as operators send them: hexadecimal digits, by version."""

# A flow_mod that deletes all flows of a switch.
DELETE_ALL = {
    "OpenFlow10": "010e004800000000" + "003fffff" + "00" * 36 + "00" * 8 + "0003" + "00000000" + "8000" + "ffffffff" + "ffff" + "0000",
    "OpenFlow13": "040e003800000000" + "00" * 16 + "ff03" + "00000000" + "0000" + "ffffffff" * 3 + "00000000" + "0001000400000000",
}
