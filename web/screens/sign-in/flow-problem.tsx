import type { SignInProblem } from '../../core/sign-in/sign-in-flow.ts';
import { asSentence } from '../../words/sign-in-words.ts';

interface FlowProblemProps {
  readonly problem: SignInProblem | null;
  /** Fields that show their own problem. */
  readonly shownFields: readonly SignInProblem['field'][];
}

/** Why the last step failed, where no field of the form shows it. */
export function FlowProblem({ problem, shownFields }: FlowProblemProps) {
  if (problem === null || shownFields.includes(problem.field)) return null;
  return (
    <p class="error" role="alert">
      {asSentence(problem.sentence)}
    </p>
  );
}
