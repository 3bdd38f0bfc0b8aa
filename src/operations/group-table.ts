import { archiveGroup, unarchiveGroup } from './groups/archive.ts';
import { leaveGroup, setRole, transferGroup } from './groups/group-roles.ts';
import { rotateToken, showToken } from './groups/group-token.ts';
import { createGroup, editGroup, groupInfo, listAllGroups } from './groups/groups.ts';
import { previewInvite } from './groups/invite-preview.ts';
import { createInvite, listGroupInvites, revokeInvite } from './groups/invites.ts';
import { findGroups, joinGroup } from './groups/join-group.ts';
import { addMember, listGroupMembers, removeMember } from './groups/members.ts';

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
