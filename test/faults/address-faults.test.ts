import { addressFaults } from '../../faults/address-faults.ts';
import { testSurvival } from './survival.ts';

await testSurvival(addressFaults);
