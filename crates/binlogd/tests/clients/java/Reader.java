import com.github.shyiko.mysql.binlog.BinaryLogClient;
import com.github.shyiko.mysql.binlog.event.DeleteRowsEventData;
import com.github.shyiko.mysql.binlog.event.Event;
import com.github.shyiko.mysql.binlog.event.EventHeaderV4;
import com.github.shyiko.mysql.binlog.event.EventType;
import com.github.shyiko.mysql.binlog.event.UpdateRowsEventData;
import com.github.shyiko.mysql.binlog.event.WriteRowsEventData;
import com.github.shyiko.mysql.binlog.event.deserialization.EventDeserializer;
import com.github.shyiko.mysql.binlog.event.deserialization.EventDeserializer.CompatibilityMode;
import com.github.shyiko.mysql.binlog.network.SSLMode;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * mysql-binlog-connector-java, as Debezium sets it up: prints every event from a place to an end.
 *
 * <p>usage: reader PORT mysql|mariadb gtid SET | position FILE OFFSET, then END_FILE END_OFFSET
 */
public final class Reader {
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    public static void main(String[] words) throws Exception {
        BinaryLogClient client = new BinaryLogClient("127.0.0.1", Integer.parseInt(words[0]), "repl", "secret");
        int at = 3;
        if (words[2].equals("gtid")) {
            client.setGtidSet(words[at++]);
        } else {
            client.setBinlogFilename(words[at++]);
            client.setBinlogPosition(Long.parseLong(words[at++]));
        }
        String endFile = words[at];
        long end = Long.parseLong(words[at + 1]);
        client.setServerId(4400 + Integer.parseInt(words[0]) % 1000);
        client.setSSLMode(SSLMode.DISABLED);
        client.setKeepAlive(true);
        client.setHeartbeatInterval(1000);
        client.setKeepAliveInterval(60_000);
        if (words[1].equals("mariadb")) {
            client.setMariaDbSlaveCapability(4);
            client.setUseSendAnnotateRowsEvent(true);
        }
        EventDeserializer deserializer = new EventDeserializer();
        deserializer.setCompatibilityMode(
            CompatibilityMode.DATE_AND_TIME_AS_LONG_MICRO, CompatibilityMode.CHAR_AND_BINARY_AS_BYTE_ARRAY);
        client.setEventDeserializer(deserializer);
        client.registerEventListener(event -> {
            EventHeaderV4 header = event.getHeader();
            if (header.getEventType() == EventType.HEARTBEAT) {
                return;
            }
            OUT.println(client.getBinlogFilename() + " " + header + " " + shown(event) + " " + client.getGtidSet());
            if (endFile.equals(client.getBinlogFilename()) && header.getNextPosition() >= end) {
                OUT.flush();
                Runtime.getRuntime().halt(0);
            }
        });
        client.registerLifecycleListener(new BinaryLogClient.AbstractLifecycleListener() {
            @Override
            public void onCommunicationFailure(BinaryLogClient client, Exception failure) {
                fail(failure);
            }

            @Override
            public void onEventDeserializationFailure(BinaryLogClient client, Exception failure) {
                fail(failure);
            }
        });
        client.connect();
    }

    private static void fail(Exception failure) {
        OUT.flush();
        failure.printStackTrace();
        Runtime.getRuntime().halt(1);
    }

    /** The library prints an array of bytes as its address. */
    private static String shown(Event event) {
        Object data = event.getData();
        List<Object> rows = new ArrayList<>();
        if (data instanceof WriteRowsEventData write) {
            write.getRows().forEach(row -> rows.add(Arrays.deepToString(row)));
            return "insert " + write.getTableId() + write.getIncludedColumns() + rows;
        }
        if (data instanceof DeleteRowsEventData delete) {
            delete.getRows().forEach(row -> rows.add(Arrays.deepToString(row)));
            return "delete " + delete.getTableId() + delete.getIncludedColumns() + rows;
        }
        if (data instanceof UpdateRowsEventData update) {
            for (Map.Entry<?, ?> row : update.getRows()) {
                Object[] pair = {row.getKey(), row.getValue()};
                rows.add(Arrays.deepToString(pair));
            }
            return "update " + update.getTableId() + update.getIncludedColumns() + rows;
        }
        return String.valueOf(data);
    }
}
