import { createGroup, groupInfo, listAllGroups, rotateToken, showToken } from './groups.ts';
import type { Operation } from './operation.ts';
import { serverStatus } from './server-status.ts';
import { createUser } from './users.ts';

/** Every operation by name. An edge that serves operations serves all of these. */
export function operationTable(): ReadonlyMap<string, Operation> {
  const all = [createUser, createGroup, groupInfo, listAllGroups, showToken, rotateToken, serverStatus];
  return new Map(all.map((operation) => [operation.name, operation as unknown as Operation]));
}
