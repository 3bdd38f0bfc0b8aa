import type { ReceiverFormat } from './receiver-format.ts';

/** For receivers whose address is a secret of theirs, which nobody can judge, and gets the request as it is. */
export const requestsToHookUrl: Pick<ReceiverFormat, 'urlProblem' | 'requestUrl'> = {
  urlProblem: () => null,
  requestUrl: ({ href }) => href,
};
