import { archiveGroup, unarchiveGroup } from './archive.ts';
import { createGroup, groupInfo, listAllGroups, rotateToken, showToken } from './groups.ts';
import { removeAnyHook, updateAnyHook } from './hook-control.ts';
import { hookInfo, listAllHooks } from './hook-directory.ts';
import { anyHookLog } from './hook-log.ts';
import { pingAnyHook } from './hook-ping.ts';
import { redeliverAnyHook, skipAnyHook } from './hook-redelivery.ts';
import { restoreRemovedHook } from './hook-restore.ts';
import { addMember, removeMember } from './members.ts';
import { sendMessage } from './messages.ts';
import type { Operation } from './operation.ts';
import { serverStatus } from './server-status.ts';
import { createUser, listUsers } from './users.ts';

/** Every operation by name. An edge that serves operations serves all of these. */
export function operationTable(): ReadonlyMap<string, Operation> {
  const all = [
    createUser,
    listUsers,
    createGroup,
    groupInfo,
    listAllGroups,
    archiveGroup,
    unarchiveGroup,
    addMember,
    removeMember,
    showToken,
    rotateToken,
    listAllHooks,
    hookInfo,
    anyHookLog,
    updateAnyHook,
    pingAnyHook,
    redeliverAnyHook,
    skipAnyHook,
    removeAnyHook,
    restoreRemovedHook,
    sendMessage,
    serverStatus,
  ];
  return new Map(all.map((operation) => [operation.name, operation as unknown as Operation]));
}
