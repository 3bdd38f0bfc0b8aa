import { clusterFaults } from '../../faults/cluster/cluster-faults.ts';
import { testSurvival } from './survival.ts';

// The other faults of a cluster take minutes each: `make faults ONLY=cluster` runs them.
await testSurvival(clusterFaults.filter(({ name }) => name === 'cluster-switchover'));
