"""python-mysql-replication: prints a line for every event from a place to an end.

usage: reader PORT mysql|mariadb gtid SET | position FILE OFFSET | now -, then END_FILE END_OFFSET
"""

import sys

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import (
    FormatDescriptionEvent,
    GtidEvent,
    HeartbeatLogEvent,
    MariadbAnnotateRowsEvent,
    MariadbGtidEvent,
    MariadbGtidListEvent,
    PreviousGtidsEvent,
    RotateEvent,
    XidEvent,
)
from pymysqlreplication.row_event import (
    DeleteRowsEvent,
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)

# All but QueryEvent: version 1.0.17 does not know all that MySQL 9.7 says in one, and ends there, on any server.
EVENTS = [
    DeleteRowsEvent,
    FormatDescriptionEvent,
    GtidEvent,
    HeartbeatLogEvent,
    MariadbAnnotateRowsEvent,
    MariadbGtidEvent,
    MariadbGtidListEvent,
    PreviousGtidsEvent,
    RotateEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
    XidEvent,
]

# What belongs to the reader and its connection, not to the event.
OWN = {"packet", "table_map", "from_packet", "dbms", "mysql_version", "complete"}


def shown(event):
    """The event's own values; those of rows with the names of their columns."""
    values = dict(vars(event))
    if isinstance(event, RowsEvent):
        values["rows"] = event.rows
        values["primary_key"] = event.primary_key
    if "columns" in values:
        values["columns"] = [(column.name, column.type) for column in values["columns"]]
    if "gtid_list" in values:
        values["gtid_list"] = [item.gtid for item in values["gtid_list"]]
    plain = (int, float, str, bytes, list, tuple, dict, set, bool)
    return {
        name: value
        for name, value in sorted(values.items())
        if not name.startswith("_") and name not in OWN and isinstance(value, plain)
    }


def main():
    port, flavor, by, *rest = sys.argv[1:]
    settings = {"host": "127.0.0.1", "port": int(port), "user": "repl", "passwd": "secret"}
    place = {}
    if by == "gtid":
        place = {"auto_position": rest[0], "is_mariadb": flavor == "mariadb"}
    elif by == "position":
        place = {"log_file": rest[0], "log_pos": int(rest[1]), "resume_stream": True}
        rest = rest[1:]
    else:
        # Asks the server where it is, and waits for what comes then.
        place = {"resume_stream": True}
    end_file, end_offset = rest[1], int(rest[2])
    stream = BinLogStreamReader(
        connection_settings=settings,
        server_id=4242 + int(port) % 1000,
        blocking=by != "now",
        only_events=EVENTS,
        annotate_rows_event=True,
        verify_checksum=True,
        slave_heartbeat=1,
        **place,
    )
    for event in stream:
        if isinstance(event, HeartbeatLogEvent):
            continue
        print(type(event).__name__, stream.log_file, stream.log_pos, event._is_event_valid, shown(event))
        if stream.log_file == end_file and event.packet.log_pos >= end_offset:
            break
    print("at", stream.log_file, stream.log_pos)
    stream.close()


main()
