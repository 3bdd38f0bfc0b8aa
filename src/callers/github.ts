import type { CallerFormat, CallerRequest } from './core/caller-format.ts';
import {
  commitLine,
  excerpt,
  firstLine,
  numberedTitle,
  readGitEvent,
  shortHash,
  type GitEventReader,
} from './core/git-event.ts';
import { oneLineEvent, placeOf, workflowRunEvent, sharedReaders, userName } from './core/github-events.ts';
import { firstStringOf, isObject, objectOf, stringOf, type JsonObject } from './core/values.ts';

const EVENT_HEADER = 'x-github-event';
/**
 * Each event contains one of these objects. A body in Slack's or Discord's format, which Gitea sends with GitHub's
 * header, contains none.
 */
const EVENT_OBJECT_KEYS = ['repository', 'sender', 'organization', 'installation', 'hook', 'enterprise'] as const;

/** The webhooks of GitHub and GitHub Enterprise Server, for repositories, organizations and apps. */
export const github: CallerFormat = {
  name: 'github',
  isSignedBySenders: true,
  matches: ({ body, headers }) =>
    stringOf(headers[EVENT_HEADER]) !== '' &&
    (EVENT_OBJECT_KEYS.some((name) => isObject(body[name])) || isObject(body['security_advisory'])),
  read: readGithub,
};

function readGithub(request: CallerRequest) {
  const { body, headers } = request;
  return readGitEvent(request, { name: stringOf(headers[EVENT_HEADER]), action: stringOf(body['action']) }, readers);
}

/**
 * Makes a reader for an event that is shown as one line; `byAction` has a function for each action. The reader returns
 * null for other actions.
 */
const oneLineReader =
  (byAction: Readonly<Record<string, (body: JsonObject) => string>>, urlOf?: (body: JsonObject) => string) =>
  (body: JsonObject) => {
    const action = stringOf(body['action']);
    const describeAction = Object.hasOwn(byAction, action) ? byAction[action]! : null;
    return describeAction === null ? null : oneLineEvent(body, describeAction(body), urlOf?.(body));
  };

const readPing: GitEventReader = (body) => ({
  repositoryOrOrg: '',
  summary: `Connected: ${placeOf(body) || 'GitHub'}`,
});

const readCommitComment: GitEventReader = (body) => {
  const comment = objectOf(body['comment']);
  if (stringOf(body['action']) !== 'created') return null;
  const hash = shortHash(stringOf(comment['commit_id']));
  const text = excerpt(stringOf(comment['body']));
  return { ...oneLineEvent(body, `commented on commit ${hash}`, stringOf(comment['html_url'])), text };
};

/**
 * Reads an event of a check suite. A suite of GitHub Actions is not shown, since the event `workflow_run` reports it
 * with the workflow's name.
 */
const readCheckSuite: GitEventReader = (body) => {
  const suite = objectOf(body['check_suite']);
  const app = objectOf(suite['app']);
  if (stringOf(body['action']) !== 'completed' || stringOf(app['slug']) === 'github-actions') return null;
  const name = firstLine(stringOf(app['name']));
  const branch = stringOf(suite['head_branch']);
  const hash = stringOf(suite['head_sha']);
  const repositoryUrl = stringOf(objectOf(body['repository'])['html_url']);
  return workflowRunEvent(body, {
    name: `check ${name}`.trim(),
    conclusion: stringOf(suite['conclusion']),
    branch,
    url: repositoryUrl === '' || hash === '' ? repositoryUrl : `${repositoryUrl}/commit/${hash}/checks`,
    commit: commitLine(objectOf(suite['head_commit'])),
    key: ['check_suite', placeOf(body), firstStringOf(app['id'], name), branch],
  });
};

const discussionName = (body: JsonObject): string => {
  const discussion = objectOf(body['discussion']);
  return numberedTitle('discussion', discussion['number'], discussion['title']);
};

const readDiscussion: GitEventReader = (body) => {
  const [discussion, answer] = [objectOf(body['discussion']), objectOf(body['answer'])];
  switch (stringOf(body['action'])) {
    case 'created':
      return {
        ...oneLineEvent(body, `opened ${discussionName(body)}`, stringOf(discussion['html_url'])),
        text: excerpt(stringOf(discussion['body'])),
      };
    case 'answered':
      return {
        ...oneLineEvent(body, `chose an answer in ${discussionName(body)}`, stringOf(answer['html_url'])),
        text: excerpt(stringOf(answer['body'])),
      };
    default:
      return null;
  }
};

const readDiscussionComment: GitEventReader = (body) => {
  const comment = objectOf(body['comment']);
  if (stringOf(body['action']) !== 'created') return null;
  return {
    ...oneLineEvent(body, `commented on ${discussionName(body)}`, stringOf(comment['html_url'])),
    text: excerpt(stringOf(comment['body'])),
  };
};

const memberName = (body: JsonObject): string => userName(body['member']);
const teamName = (body: JsonObject): string => firstLine(stringOf(objectOf(body['team'])['name']));
const teamUrl = (body: JsonObject): string => stringOf(objectOf(body['team'])['html_url']);
const memberOfOrganization = (body: JsonObject): string => userName(objectOf(body['membership'])['user']);
const previousName = (body: JsonObject, keyPath: readonly string[]): string =>
  firstLine(stringOf(keyPath.reduce<unknown>((value, key) => objectOf(value)[key], body['changes'])));

/**
 * The readers by the names of events. GitHub sends a star as `star` and `watch`, and a repository that was made public
 * as `public` and `repository`. Only one of the two is shown.
 */
const readers: ReadonlyMap<string, GitEventReader> = new Map<string, GitEventReader>([
  ...sharedReaders,
  ['ping', readPing],
  ['commit_comment', readCommitComment],
  ['check_suite', readCheckSuite],
  ['discussion', readDiscussion],
  ['discussion_comment', readDiscussionComment],
  ['public', (body) => oneLineEvent(body, 'made the repository public')],
  ['star', oneLineReader({ created: () => 'starred the repository' })],
  [
    'member',
    oneLineReader({
      added: (body) =>
        userName(body['sender']) === memberName(body)
          ? 'joined as a collaborator'
          : `added ${memberName(body)} as a collaborator`,
      removed: (body) => `removed ${memberName(body)} as a collaborator`,
    }),
  ],
  [
    'membership',
    oneLineReader(
      {
        added: (body) => `added ${memberName(body)} to team ${teamName(body)}`,
        removed: (body) => `removed ${memberName(body)} from team ${teamName(body)}`,
      },
      teamUrl,
    ),
  ],
  [
    'team',
    oneLineReader(
      { created: (body) => `created team ${teamName(body)}`, deleted: (body) => `deleted team ${teamName(body)}` },
      teamUrl,
    ),
  ],
  [
    'organization',
    oneLineReader({
      member_added: (body) => `added ${memberOfOrganization(body)} to the organization`,
      member_removed: (body) => `removed ${memberOfOrganization(body)} from the organization`,
      renamed: (body) => `renamed the organization from ${previousName(body, ['login', 'from'])}`,
      deleted: () => 'deleted the organization',
    }),
  ],
  [
    'repository',
    oneLineReader({
      created: () => 'created the repository',
      deleted: () => 'deleted the repository',
      archived: () => 'archived the repository',
      unarchived: () => 'took the repository out of the archive',
      privatized: () => 'made the repository private',
      renamed: (body) => `renamed the repository from ${previousName(body, ['repository', 'name', 'from'])}`,
      transferred: () => 'transferred the repository',
    }),
  ],
]);
