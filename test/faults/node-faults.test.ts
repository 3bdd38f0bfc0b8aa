import { nodeFaults } from '../../faults/node-faults.ts';
import { testSurvival } from './survival.ts';

await testSurvival(nodeFaults);
