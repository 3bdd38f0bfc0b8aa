import type { HookKind } from '../stage.ts';

/**
 * What one hook of each group asks for in `events`, beside the hooks that ask for nothing. Empty: hooks of this server
 * cannot ask for any yet; then there is no such hook.
 */
const HOOK_EVENTS: readonly string[] = [];

/** The hooks of a cluster's groups beyond those of every fault. */
export const eventHookKinds: readonly HookKind[] =
  HOOK_EVENTS.length === 0 ? [] : [{ order: 'strict', batch: 1, events: HOOK_EVENTS }];
