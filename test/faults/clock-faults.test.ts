import { clockFaults } from '../../faults/clock-faults.ts';
import { testSurvival } from './survival.ts';

await testSurvival(clockFaults);
