import { callersKillFault } from '../../../faults/callers/callers-kill-fault.ts';
import { testSurvival } from '../../faults/survival.ts';

await testSurvival([callersKillFault]);
