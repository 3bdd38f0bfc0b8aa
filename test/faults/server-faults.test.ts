import { serverFaults } from '../../faults/server-faults.ts';
import { testSurvival } from './survival.ts';

await testSurvival(serverFaults);
