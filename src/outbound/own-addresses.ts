import type ipaddr from 'ipaddr.js';

export type Address = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * A source of public addresses that are not for the public: the server's own, and its neighbours'. The address policy
 * checks it for each address that no other rule refuses.
 */
export interface OwnOrNeighbourAddresses {
  /** The short name of the rule that refuses the address; null when the rule does not apply. */
  refusingRuleOf(address: Address): string | null;
}

/** The rule for addresses that lead back to this server. Error sentences hold it: "<address> (this server's own)". */
export const OWN_RULE = "this server's own";
