// A process that posts messages about overdue expectations and about those that were met again, until its standard
// input ends: `node telling-node.ts <JSON of a ConnectionTarget>`. It prints a line for each group that got messages in
// a round, so that a test can kill it in the middle.
import { writeSync } from 'node:fs';
import { LocalBus } from '../../src/bus/bus.ts';
import { silentLog } from '../../src/log.ts';
import type { Services } from '../../src/operations/core/services.ts';
import { Database } from '../../src/storage/database.ts';
import type { ConnectionTarget } from '../../src/storage/db/connection.ts';
import { ExpectationMonitor } from '../../src/workers/expectation-monitor.ts';
import { postgresqlConfig } from '../support/config.ts';

const database = new Database(JSON.parse(process.argv[2]!) as ConnectionTarget, postgresqlConfig, silentLog());
const bus = new LocalBus();
bus.subscribe({ messagesCommitted: () => void writeSync(1, 'told\n') });
const services = { database, bus, messageLog: { isSuspended: false }, log: silentLog() };
const monitor = new ExpectationMonitor(services as unknown as Services);

let ended = false;
process.stdin.on('end', () => (ended = true)).resume();
// oxlint-disable-next-line no-unmodified-loop-condition -- the end of the input does.
while (!ended) await monitor.runOnce();
await database.stop();
