import { archiveGroup, unarchiveGroup } from './archive.ts';
import { leaveGroup, setRole, transferGroup } from './group-roles.ts';
import { rotateToken, showToken } from './group-token.ts';
import { createGroup, editGroup, groupInfo, listAllGroups } from './groups.ts';
import { previewInvite } from './invite-preview.ts';
import { createInvite, listGroupInvites, revokeInvite } from './invites.ts';
import { findGroups, joinGroup } from './join-group.ts';
import { addMember, listGroupMembers, removeMember } from './members.ts';

/** The operations about groups, their members and how one comes into them, a part of the table of all. */
export function groupOperations() {
  return [
    createGroup,
    editGroup,
    groupInfo,
    listAllGroups,
    archiveGroup,
    unarchiveGroup,
    listGroupMembers,
    addMember,
    removeMember,
    setRole,
    transferGroup,
    leaveGroup,
    findGroups,
    joinGroup,
    createInvite,
    listGroupInvites,
    revokeInvite,
    previewInvite,
    showToken,
    rotateToken,
  ] as const;
}
