import { clusterFaults } from '../../faults/cluster/cluster-faults.ts';
import { testSurvival } from './survival.ts';

// The others take minutes each: `make faults ONLY=cluster`.
await testSurvival(clusterFaults.filter(({ name }) => name === 'cluster-switchover'));
