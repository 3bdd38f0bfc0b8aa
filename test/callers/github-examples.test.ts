import { createRequire } from 'node:module';
import { describe, expect, test } from '@jest/globals';
import { isIgnored } from '../../src/callers/core/message-form.ts';
import { renderText } from '../../src/callers/core/render-text.ts';
import type { JsonObject } from '../../src/callers/core/values.ts';
import { detectFormat } from '../../src/callers/formats.ts';
import { github } from '../../src/callers/github.ts';
import { mentionsOf } from '../../src/model/mentions.ts';

const examples = createRequire(import.meta.url)('@octokit/webhooks-examples') as readonly {
  readonly name: string;
  readonly examples: readonly JsonObject[];
}[];

/**
 * By event of the examples: the actions that are shown; `''` is the action of an event that has none. An empty list
 * means that the event is not shown, on purpose.
 */
const SHOWN: Readonly<Record<string, readonly string[]>> = {
  check_suite: ['completed'],
  commit_comment: ['created'],
  create: [''],
  delete: [''],
  discussion: ['answered', 'created'],
  discussion_comment: ['created'],
  fork: [''],
  issue_comment: ['created'],
  issues: ['opened', 'reopened'],
  member: ['added'],
  membership: ['added', 'removed'],
  organization: ['member_added', 'renamed'],
  ping: [''],
  public: [''],
  pull_request: ['closed', 'opened', 'ready_for_review', 'reopened'],
  pull_request_review_comment: ['created'],
  push: [''],
  release: ['published'],
  repository: ['created', 'privatized', 'renamed', 'transferred'],
  star: ['created'],
  team: ['created', 'deleted'],
  workflow_run: ['completed'],
  // The examples have no review with a text or a verdict.
  pull_request_review: [],
  // GitHub sends another event at the same time, which shows their contents: workflow_run or check_suite, star.
  check_run: [],
  workflow_job: [],
  watch: [],
  // These events are useful for a page or a program, and too many for a group of people.
  deployment: [],
  deployment_review: [],
  deployment_status: [],
  gollum: [],
  label: [],
  merge_group: [],
  milestone: [],
  package: [],
  page_build: [],
  project: [],
  project_card: [],
  project_column: [],
  projects_v2_item: [],
  pull_request_review_thread: [],
  repository_dispatch: [],
  repository_import: [],
  status: [],
  workflow_dispatch: [],
  // These events are about settings and accounts.
  branch_protection_rule: [],
  deploy_key: [],
  github_app_authorization: [],
  installation: [],
  installation_repositories: [],
  marketplace_purchase: [],
  meta: [],
  org_block: [],
  sponsorship: [],
  team_add: [],
  // These events are not shown: not everybody in a group may see weaknesses that are not fixed yet.
  code_scanning_alert: [],
  dependabot_alert: [],
  repository_vulnerability_alert: [],
  security_advisory: [],
};

const requestOf = (name: string, body: JsonObject) => ({
  body,
  headers: { 'x-github-event': name },
  query: new URLSearchParams(),
});

test('all events of the examples are in the table', () => {
  expect(examples.reduce((count, { examples }) => count + examples.length, 0)).toBe(329);
  expect(examples.map(({ name }) => name).toSorted()).toEqual(Object.keys(SHOWN).toSorted());
});

describe.each([...examples])('$name', ({ name, examples: bodies }) => {
  test('is shown with a text that mentions nobody, or ignored by its name', () => {
    const shown = new Set<string>();
    for (const body of bodies) {
      const request = requestOf(name, body);
      expect(detectFormat(request)).toBe(github);
      const result = github.read(request);
      if (isIgnored(result)) {
        expect(result.ignored === name || result.ignored === `${name}.${String(body['action'])}`).toBe(true);
        continue;
      }
      const text = renderText(result);
      expect(text).not.toBe('');
      expect(text).not.toMatch(/undefined|null|\[object|somebody/);
      expect(mentionsOf(text)).toEqual([]);
      shown.add(typeof body['action'] === 'string' ? body['action'] : '');
    }
    expect([...shown].toSorted()).toEqual(SHOWN[name]);
  });
});
