import type { ReceiverFormat } from './receiver-format.ts';

/**
 * The functions for receivers whose address is a secret without a known form: any address is valid, and gets the POST
 * unchanged.
 */
export const requestsToHookUrl: Pick<ReceiverFormat, 'urlProblem' | 'requestUrl'> = {
  urlProblem: () => null,
  requestUrl: ({ href }) => href,
};
