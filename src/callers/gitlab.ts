import type { CallerFormat, CallerRequest } from './core/caller-format.ts';
import {
  commitLine,
  commitLines,
  countOfCommits,
  excerpt,
  firstLine,
  isNoCommit,
  numberedTitle,
  readGitEvent,
  refName,
  alertOfRun,
  shortHash,
  type GitEvent,
  type GitEventReader,
} from './core/git-event.ts';
import { MAX_FIELDS } from './core/render-text.ts';
import { firstStringOf, numberOf, objectOf, objectsOf, stringOf, type JsonObject } from './core/values.ts';

/**
 * The webhooks of GitLab for projects and groups, and its system hooks. A body from a custom template is not in this
 * format.
 */
export const gitlab: CallerFormat = {
  name: 'gitlab',
  isSignedBySenders: true,
  matches: ({ body, headers }) =>
    isNonEmptyString(body['object_kind']) ||
    (stringOf(headers['x-gitlab-event']) !== '' && isNonEmptyString(body['event_name'])),
  read: readGitlab,
};

function isNonEmptyString(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function readGitlab(request: CallerRequest) {
  const { body } = request;
  const action = firstStringOf(attributesOf(body)['action'], body['action']);
  return readGitEvent(request, { name: firstStringOf(body['object_kind'], body['event_name']), action }, readers);
}

const attributesOf = (body: JsonObject): JsonObject => objectOf(body['object_attributes']);
const projectUrl = (body: JsonObject): string => stringOf(objectOf(body['project'])['web_url']);

/** The place of an event: "group/project". In events of jobs, old versions of GitLab leave the project out. */
function projectPathOf(body: JsonObject): string {
  const group = objectOf(body['group']);
  return firstStringOf(
    objectOf(body['project'])['path_with_namespace'],
    body['path_with_namespace'],
    group['full_path'],
    group['group_path'],
    body['full_path'],
    body['group_path'],
    body['project_name'],
  );
}

/**
 * The user who acted. Most events have an object `user`; pushes and changes of a group's members have the fields
 * `user_username` and `user_name`.
 */
function actorOf(body: JsonObject): string {
  const { username, name } = objectOf(body['user']);
  return firstLine(firstStringOf(username, name, body['user_username'], body['user_name'])) || 'somebody';
}

function oneLineEvent(body: JsonObject, whatActorDid: string, url = projectUrl(body)): GitEvent {
  return { repositoryOrOrg: projectPathOf(body), summary: `${actorOf(body)} ${whatActorDid}`, url };
}

/** The URL of a page of the project; empty if the event does not have the project's URL. */
function projectPageUrl(body: JsonObject, path: string): string {
  return projectUrl(body) === '' ? '' : `${projectUrl(body)}/-/${path}`;
}

const readPush: GitEventReader = (body) => {
  const [before, after] = [stringOf(body['before']), stringOf(body['after'])];
  const branch = refName(stringOf(body['ref']));
  if (branch === '') return null;
  if (isNoCommit(after)) return { ...oneLineEvent(body, `deleted branch ${branch}`), branch };
  const listedCommitCount = Array.isArray(body['commits']) ? body['commits'].length : 0;
  const commitCount = Math.max(listedCommitCount, numberOf(body['total_commits_count']) ?? 0);
  const isNewBranch = isNoCommit(before);
  if (commitCount === 0 && isNewBranch)
    return { ...oneLineEvent(body, `created branch ${branch}`, projectPageUrl(body, `tree/${branch}`)), branch };
  return {
    repositoryOrOrg: `${projectPathOf(body)}:${branch}`,
    branch,
    summary: `${actorOf(body)} pushed ${countOfCommits(commitCount)}${isNewBranch ? ' to a new branch' : ''}`,
    url: isNewBranch ? projectPageUrl(body, `tree/${branch}`) : projectPageUrl(body, `compare/${before}...${after}`),
    text: commitLines(body['commits'], commitCount),
  };
};

const readTagPush: GitEventReader = (body) => {
  const tag = refName(stringOf(body['ref']));
  if (tag === '') return null;
  if (isNoCommit(stringOf(body['after']))) return oneLineEvent(body, `deleted tag ${tag}`);
  return {
    ...oneLineEvent(body, `created tag ${tag}`, projectPageUrl(body, `tags/${tag}`)),
    text: firstLine(stringOf(body['message'])),
  };
};

const VERB_BY_ACTION: ReadonlyMap<string, string> = new Map([
  ['open', 'opened'],
  ['close', 'closed'],
  ['reopen', 'reopened'],
  ['merge', 'merged'],
  ['approved', 'approved'],
  ['approval', 'approved'],
]);

/**
 * True if the event is about a confidential issue or a note on one. Klatch does not know who may see the issue, so its
 * title and text are not shown.
 */
function isConfidential(body: JsonObject): boolean {
  const attributes = attributesOf(body);
  return (
    stringOf(body['event_type']).startsWith('confidential_') ||
    attributes['confidential'] === true ||
    attributes['internal'] === true ||
    objectOf(body['issue'])['confidential'] === true
  );
}

/** Reads an event of an issue, incident, task or epic; the field `type` says which of them. */
const readIssue: GitEventReader = (body) => {
  const issue = attributesOf(body);
  const verb = VERB_BY_ACTION.get(stringOf(issue['action']));
  if (verb === undefined) return null;
  const kind = firstLine(stringOf(issue['type'])).toLowerCase() || 'issue';
  const url = stringOf(issue['url']);
  if (isConfidential(body))
    return oneLineEvent(body, `${verb} ${numberedTitle(`confidential ${kind}`, issue['iid'], '')}`, url);
  return {
    ...oneLineEvent(body, `${verb} ${numberedTitle(kind, issue['iid'], issue['title'])}`, url),
    text: verb === 'opened' ? excerpt(stringOf(issue['description'])) : '',
  };
};

function notedObjectName(body: JsonObject): string {
  const [issue, request, snippet] = [
    objectOf(body['issue']),
    objectOf(body['merge_request']),
    objectOf(body['snippet']),
  ];
  switch (stringOf(attributesOf(body)['noteable_type'])) {
    case 'Commit':
      return `commit ${shortHash(firstStringOf(attributesOf(body)['commit_id'], objectOf(body['commit'])['id']))}`;
    case 'MergeRequest':
      return numberedTitle('merge request', request['iid'], request['title'], '!');
    case 'Snippet':
      return numberedTitle('snippet', snippet['id'], snippet['title'], '$');
    default:
      return numberedTitle('issue', issue['iid'], issue['title']);
  }
}

const readNote: GitEventReader = (body) => {
  const note = attributesOf(body);
  if (note['system'] === true || !['', 'create'].includes(stringOf(note['action']))) return null;
  const url = stringOf(note['url']);
  if (isConfidential(body)) return oneLineEvent(body, 'wrote a confidential comment', url);
  const event = {
    ...oneLineEvent(body, `commented on ${notedObjectName(body)}`, url),
    text: excerpt(stringOf(note['note'])),
  };
  const branch = stringOf(objectOf(body['merge_request'])['target_branch']);
  return { ...event, branch };
};

const readMergeRequest: GitEventReader = (body) => {
  const mergeRequest = attributesOf(body);
  const action = stringOf(mergeRequest['action']);
  const draft = objectOf(objectOf(body['changes'])['draft']);
  const isReady = action === 'update' && draft['previous'] === true && draft['current'] === false;
  const verb = isReady ? 'marked as ready' : VERB_BY_ACTION.get(action);
  if (verb === undefined) return null;
  const kind = action === 'open' && mergeRequest['draft'] === true ? 'draft merge request' : 'merge request';
  return {
    ...oneLineEvent(
      body,
      `${verb} ${numberedTitle(kind, mergeRequest['iid'], mergeRequest['title'], '!')}`,
      stringOf(mergeRequest['url']),
    ),
    text: action === 'open' ? excerpt(stringOf(mergeRequest['description'])) : '',
    branch: stringOf(mergeRequest['target_branch']),
  };
};

function failedJobsLine(body: JsonObject): string {
  const failed = objectsOf(body['builds'], 1_000).filter(
    (job) => stringOf(job['status']) === 'failed' && job['allow_failure'] !== true,
  );
  const names = failed.slice(0, MAX_FIELDS).map((job) => firstLine(stringOf(job['name'])));
  const more = failed.length > names.length ? ` and ${failed.length - names.length} more` : '';
  return names.length === 0 ? '' : `Failed: ${names.join(', ')}${more}`;
}

/**
 * Reads the end of a pipeline. The key of its alert has the source of the pipeline. So a pipeline that a push started
 * does not resolve the failure of a nightly one.
 */
const readPipeline: GitEventReader = (body) => {
  const pipeline = attributesOf(body);
  const status = stringOf(pipeline['status']);
  if (status !== 'failed' && status !== 'success') return null;
  const hasFailed = status === 'failed';
  const [id, branch] = [stringOf(pipeline['id']), refName(stringOf(pipeline['ref']))];
  const commit = commitLine(objectOf(body['commit']));
  return {
    repositoryOrOrg: branch === '' ? projectPathOf(body) : `${projectPathOf(body)}:${branch}`,
    branch: pipeline['tag'] === true ? '' : branch,
    summary: `pipeline #${id} ${hasFailed ? 'failed' : 'succeeded again'}`,
    url: firstStringOf(pipeline['url'], projectPageUrl(body, `pipelines/${id}`)),
    text: hasFailed ? [commit, failedJobsLine(body)].filter((line) => line !== '').join('\n') : '',
    mood: hasFailed ? 'danger' : 'good',
    alert: alertOfRun(
      hasFailed ? 'failed' : 'succeeded',
      'pipeline',
      projectPathOf(body),
      stringOf(pipeline['source']),
      branch,
    ),
  };
};

const readJob: GitEventReader = (body) => {
  if (stringOf(body['build_status']) !== 'failed' || body['build_allow_failure'] === true) return null;
  const branch = refName(stringOf(body['ref']));
  const reason = firstLine(stringOf(body['build_failure_reason'])).replaceAll('_', ' ');
  return {
    repositoryOrOrg: branch === '' ? projectPathOf(body) : `${projectPathOf(body)}:${branch}`,
    branch: body['tag'] === true ? '' : branch,
    summary: `job ${firstLine(stringOf(body['build_name']))} failed`,
    url: projectPageUrl(body, `jobs/${stringOf(body['build_id'])}`),
    text: reason === 'unknown failure' ? '' : reason,
    mood: 'danger',
  };
};

const readDeployment: GitEventReader = (body) => {
  const status = stringOf(body['status']);
  if (status !== 'success' && status !== 'failed') return null;
  const environment = firstLine(stringOf(body['environment']));
  const commitParts = [stringOf(body['short_sha']), firstLine(stringOf(body['commit_title']))].filter(
    (part) => part !== '',
  );
  return {
    ...oneLineEvent(
      body,
      status === 'success' ? `deployed to ${environment}` : `failed to deploy to ${environment}`,
      firstStringOf(body['deployable_url'], projectUrl(body)),
    ),
    text: commitParts.join(' '),
    mood: status === 'success' ? 'good' : 'danger',
  };
};

/** Reads a new release. The event does not say who made it. */
const readRelease: GitEventReader = (body) => {
  if (stringOf(body['action']) !== 'create') return null;
  const [tag, name] = [firstLine(stringOf(body['tag'])), firstLine(stringOf(body['name']))];
  return {
    repositoryOrOrg: projectPathOf(body),
    summary: `release ${name === '' || name === tag ? tag : `${tag}: ${name}`} was published`,
    url: stringOf(body['url']),
    text: excerpt(stringOf(body['description'])),
  };
};

const PAGE_VERB_BY_ACTION: ReadonlyMap<string, string> = new Map([
  ['create', 'created'],
  ['update', 'edited'],
  ['delete', 'deleted'],
]);

const readWikiPage: GitEventReader = (body) => {
  const page = attributesOf(body);
  const verb = PAGE_VERB_BY_ACTION.get(stringOf(page['action']));
  if (verb === undefined) return null;
  const [title, message] = [firstLine(stringOf(page['title'])), firstLine(stringOf(page['message']))];
  return { ...oneLineEvent(body, `${verb} wiki page ${title}`, stringOf(page['url'])), text: message };
};

const readFeatureFlag: GitEventReader = (body) => {
  const { name, active } = attributesOf(body);
  const what = `turned feature flag ${firstLine(stringOf(name))} ${active === true ? 'on' : 'off'}`;
  return oneLineEvent(body, what, projectPageUrl(body, 'feature_flags'));
};

const readAccessToken: GitEventReader = (body) => {
  const { name, expires_at: day } = attributesOf(body);
  const summary = `access token ${firstLine(stringOf(name))} expires on ${firstLine(stringOf(day))}`;
  return { repositoryOrOrg: projectPathOf(body), summary, url: projectUrl(body), mood: 'warning' };
};

/**
 * Makes a reader for an event of a group. The event does not say who acted: its `user_…` fields are about the member
 * that was added, changed or removed.
 */
const groupEventReader =
  (summaryOf: (body: JsonObject) => string): GitEventReader =>
  (body) => ({ repositoryOrOrg: projectPathOf(body), summary: summaryOf(body) });

const readers: ReadonlyMap<string, GitEventReader> = new Map<string, GitEventReader>([
  ['push', readPush],
  ['tag_push', readTagPush],
  ['issue', readIssue],
  ['work_item', readIssue],
  ['note', readNote],
  ['merge_request', readMergeRequest],
  ['pipeline', readPipeline],
  ['build', readJob],
  ['deployment', readDeployment],
  ['release', readRelease],
  ['wiki_page', readWikiPage],
  ['feature_flag', readFeatureFlag],
  ['access_token', readAccessToken],
  ['user_add_to_group', groupEventReader((body) => `${actorOf(body)} was added to the group`)],
  ['user_remove_from_group', groupEventReader((body) => `${actorOf(body)} was removed from the group`)],
  ['project_create', groupEventReader(() => 'the project was created')],
  ['project_destroy', groupEventReader(() => 'the project was deleted')],
  ['subgroup_create', groupEventReader(() => 'the subgroup was created')],
  ['subgroup_destroy', groupEventReader(() => 'the subgroup was deleted')],
]);
