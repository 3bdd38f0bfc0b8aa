/** The fields of a failed delivery that say why it failed. */
interface DeliveryError {
  readonly category: string | null;
  readonly code: number | null;
}

const CATEGORY_SENTENCES: Readonly<Record<string, string>> = {
  timeout: 'the target did not answer in time',
  refused: 'the target refused the connection or cannot be reached',
  tls: 'no TLS connection could be made',
  dns: 'the name of the target could not be resolved',
  connection: 'the connection broke',
  signature: 'the server has no key to sign it with (modules.security.server-keys)',
  'address policy': 'the address policy refuses the address (delivery.allow)',
};

/** A sentence for people that says why a delivery failed. */
export function errorSentence({ category, code }: DeliveryError): string {
  if (category === 'status') return code === null ? 'the target answered with an error' : `the target answered ${code}`;
  return CATEGORY_SENTENCES[category ?? ''] ?? `the delivery failed${category === null ? '' : `: ${category}`}`;
}

const REPLY_PROBLEM_SENTENCES: Readonly<Record<string, string>> = {
  'reply too large': 'its reply has more than 256 KiB and was not posted',
  'reply incomplete': 'its reply did not end in time, or broke off, and was not posted',
  'reply unreadable': 'its reply cannot be read and was not posted',
  'reply refused': 'its reply was refused and not posted',
  'reply hop limit': 'its reply was not posted, since the message had passed through too many webhooks (limits.hops)',
  'group archived': 'its reply was not posted, since the group is archived',
};

/** A sentence for people that says why the reply of a target was not posted into the group. */
export function replyProblemSentence(category: string): string {
  return REPLY_PROBLEM_SENTENCES[category] ?? `its reply was not posted: ${category}`;
}
