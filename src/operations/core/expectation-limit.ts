import { KlatchError } from '../../errors.ts';
import { MAX_EXPECTATIONS_PER_GROUP } from '../../model/expectation.ts';

export function tooManyExpectations(): KlatchError {
  const sentence = `A group has at most ${MAX_EXPECTATIONS_PER_GROUP} expectations: remove one first`;
  return new KlatchError('quota_exceeded', { sentence });
}
