// go-mysql: prints what its syncer, or its canal, gives from a place to an end.
//
// usage: reader PORT mysql|mariadb gtid SET | position FILE OFFSET, then END_FILE END_OFFSET; canal-gtid and
// canal-position read by the canal. TABLES_PORT names a server that has the tables: the canal asks for their columns.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"

	"github.com/go-mysql-org/go-mysql/canal"
	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/go-mysql-org/go-mysql/schema"
)

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	port, flavor, by, rest := os.Args[1], os.Args[2], os.Args[3], os.Args[4:]
	var set mysql.GTIDSet
	var place mysql.Position
	switch by {
	case "gtid", "canal-gtid":
		set = must(mysql.ParseGTIDSet(flavor, rest[0]))
		rest = rest[1:]
	default:
		place = mysql.Position{Name: rest[0], Pos: uint32(must(strconv.Atoi(rest[1])))}
		rest = rest[2:]
	}
	end := mysql.Position{Name: rest[0], Pos: uint32(must(strconv.Atoi(rest[1])))}
	if by == "gtid" || by == "position" {
		sync(port, flavor, set, place, end)
	} else {
		readByCanal(port, flavor, set, place, end)
	}
}

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func sync(port, flavor string, set mysql.GTIDSet, place, end mysql.Position) {
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: uint32(4300 + must(strconv.Atoi(port))%1000), Flavor: flavor, Host: "127.0.0.1",
		Port: uint16(must(strconv.Atoi(port))), User: "repl", Password: "secret", VerifyChecksum: true,
		Logger: quiet(), HeartbeatPeriod: 1e9,
	})
	var streamer *replication.BinlogStreamer
	if set != nil {
		streamer = must(syncer.StartSyncGTID(set))
	} else {
		streamer = must(syncer.StartSync(place))
	}
	file := ""
	for {
		event := must(streamer.GetEvent(context.Background()))
		if rotate, is := event.Event.(*replication.RotateEvent); is {
			file = string(rotate.NextLogName)
		}
		if event.Header.EventType != replication.HEARTBEAT_EVENT {
			event.Dump(os.Stdout)
		}
		if file == end.Name && event.Header.LogPos >= end.Pos {
			return
		}
	}
}

// handler prints what the canal makes of the events.
type handler struct {
	canal.DummyEventHandler
	canal  *canal.Canal
	tables *client.Conn
	end    mysql.Position
}

// OnTableChanged gives the canal the columns of a table, of which it has just forgotten those it knew.
func (h *handler) OnTableChanged(_ *replication.EventHeader, database, table string) error {
	fmt.Println("changed", database, table)
	found, err := schema.NewTable(h.tables, database, table)
	if err == nil {
		h.canal.SetTableCache([]byte(database), []byte(table), found)
	}
	return nil
}

func (h *handler) OnRow(event *canal.RowsEvent) error {
	fmt.Printf("%s %s %d %q\n", event.Action, event.Table, event.Header.LogPos, event.Rows)
	return nil
}

func (h *handler) OnDDL(_ *replication.EventHeader, next mysql.Position, event *replication.QueryEvent) error {
	fmt.Println("ddl", next, string(event.Schema), string(event.Query))
	return nil
}

func (h *handler) OnGTID(_ *replication.EventHeader, event mysql.BinlogGTIDEvent) error {
	fmt.Println("gtid", must(event.GTIDNext()))
	return nil
}

func (h *handler) OnPosSynced(_ *replication.EventHeader, at mysql.Position, set mysql.GTIDSet, force bool) error {
	fmt.Println("synced", at, set, force)
	if at.Compare(h.end) >= 0 {
		os.Exit(0)
	}
	return nil
}

func readByCanal(port, flavor string, set mysql.GTIDSet, place, end mysql.Position) {
	config := canal.NewDefaultConfig()
	config.Addr, config.User, config.Password, config.Flavor = "127.0.0.1:"+port, "repl", "secret", flavor
	config.ServerID = uint32(4300 + must(strconv.Atoi(port))%1000)
	config.Logger = quiet()
	// No snapshot by mysqldump: a copy of binary logs has no tables.
	config.Dump.ExecutionPath = ""
	reader := must(canal.NewCanal(config))
	tables := must(client.Connect("127.0.0.1:"+os.Getenv("TABLES_PORT"), "repl", "secret", ""))
	h := &handler{canal: reader, tables: tables, end: end}
	reader.SetEventHandler(h)
	for _, row := range must(tables.Execute("SHOW TABLES FROM d")).Values {
		check(h.OnTableChanged(nil, "d", string(row[0].AsString())))
	}
	if set != nil {
		check(reader.StartFromGTID(set))
	} else {
		check(reader.RunFrom(place))
	}
}
