import { databaseFaults } from '../../faults/database-faults.ts';
import { diskFault } from '../../faults/disk-fault.ts';
import { testSurvival } from './survival.ts';

await testSurvival([...databaseFaults, diskFault]);
