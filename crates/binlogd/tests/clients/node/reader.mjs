// zongji: prints every event from a place to an end. With binlog_row_metadata = FULL the events name their columns, and
// zongji asks no table of the server.
//
// usage: reader PORT mysql|mariadb gtid SET | position FILE OFFSET | now -, then END_FILE END_OFFSET
import { writeSync } from 'node:fs';
import ZongJi from '@vlasky/zongji';

const [port, , by, ...rest] = process.argv.slice(2);
const place = {};
if (by === 'gtid') {
  place.gtidSet = rest.shift();
} else if (by === 'position') {
  [place.filename, place.position] = [rest.shift(), Number(rest.shift())];
} else {
  place.startAtEnd = true;
  rest.shift();
}
const [endFile, endOffset] = [rest[0], Number(rest[1])];

// What belongs to the library or to the moment, not to the event.
const own = new Set(['_zongji', 'tableMap', 'useChecksum', '_parser', 'parser']);
const shown = (name, value) => {
  if (own.has(name)) return undefined;
  if (typeof value === 'bigint') return `${value}n`;
  if (value?.type === 'Buffer') return Buffer.from(value.data).toString('hex');
  return value;
};

const reader = new ZongJi({ host: '127.0.0.1', port: Number(port), user: 'repl', password: 'secret' });
reader.on('error', (error) => {
  console.error(error);
  process.exit(1);
});
const print = (line) => writeSync(1, `${line}\n`);
reader.on('ready', () => {
  if (by !== 'now') return;
  print(`at ${reader.options.filename} ${reader.options.position} ${reader.gtidSet}`);
  process.exit(0);
});
let file = '';
reader.on('binlog', (event) => {
  if (event.getTypeName() === 'Heartbeat') return;
  if (event.getTypeName() === 'Rotate') file = event.binlogName;
  print(`${event.getTypeName()} ${file} ${JSON.stringify(event, shown)}`);
  if (file === endFile && event.nextPosition >= endOffset) {
    print(`has ${reader.gtidSet}`);
    process.exit(0);
  }
});
reader.start({ serverId: 4500 + (Number(port) % 1000), ...place });
