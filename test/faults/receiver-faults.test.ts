import { receiverFaults } from '../../faults/receiver-faults.ts';
import { answerSizeFault } from '../../faults/answer-size-fault.ts';
import { testSurvival } from './survival.ts';

await testSurvival([...receiverFaults, answerSizeFault]);
