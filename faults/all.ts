import { addressFaults } from './address-faults.ts';
import { answerSizeFault } from './answer-size-fault.ts';
import { callersKillFault } from './callers/callers-kill-fault.ts';
import { clockFaults } from './clock-faults.ts';
import { clusterFaults } from './cluster/cluster-faults.ts';
import { databaseFaults } from './database-faults.ts';
import { diskFault } from './disk-fault.ts';
import type { Fault } from './fault.ts';
import { nodeFaults } from './node-faults.ts';
import { receiverFaults } from './receiver-faults.ts';
import { serverFaults } from './server-faults.ts';
import { browserFaults } from './web/browser-faults.ts';

/** Every fault of the report, in the order of its rows. */
export const allFaults: readonly Fault[] = [
  ...serverFaults,
  callersKillFault,
  ...browserFaults,
  ...databaseFaults,
  ...receiverFaults,
  answerSizeFault,
  ...addressFaults,
  ...clockFaults,
  ...nodeFaults,
  ...clusterFaults,
  diskFault,
];
