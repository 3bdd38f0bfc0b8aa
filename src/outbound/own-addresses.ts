import type ipaddr from 'ipaddr.js';

export type Address = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * Knows public addresses that must be refused nevertheless: the server's own and its neighbours'. The address policy
 * asks it about each address that no other rule refuses.
 */
export interface OwnOrNeighbourAddresses {
  /** The short name of the rule that refuses the address; null when the rule does not apply. */
  refusingRuleOf(address: Address): string | null;
}

/**
 * The name of the rule for addresses that lead back to this server. Error messages contain it: "<address> (this
 * server's own)".
 */
export const OWN_RULE = "this server's own";
