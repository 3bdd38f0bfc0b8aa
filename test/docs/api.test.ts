import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { Validator } from '@seriousme/openapi-schema-validator';
import { renderAccess } from '../../scripts/access-page.ts';
import { renderApi } from '../../scripts/api-page.ts';
import { examples } from '../../scripts/api-examples.ts';
import { renderOpenApi } from '../../scripts/openapi.ts';
import { describeOperation, isForHttp, type JsonSchema } from '../../src/operations/describe/operation-docs.ts';
import { fieldsOf } from '../../src/operations/describe/schema-fields.ts';
import type { Operation } from '../../src/operations/core/operation.ts';
import { operationTable } from '../../src/operations/table.ts';
import { root } from '../cli/program.ts';

const read = (name: string): string => readFileSync(join(root, 'docs', name), 'utf8');
const served = [...operationTable().values()].filter(({ who }) => who !== 'system');

describe('docs/api.md', () => {
  const page = read('api.md');

  test('is what the operations say of themselves now', () => {
    expect(page).toBe(renderApi());
  });

  test('has every operation once, and those of the command line alone not', () => {
    const headings = [...page.matchAll(/^### ([a-z]+\..+)$/gm)].map((match) => match[1]!);
    expect([...headings].sort()).toEqual(served.map(({ name }) => name).sort());
  });

  test('lists the operations of a noun one behind the other', () => {
    const nouns = served.map(({ name }) => name.split('.')[0]).filter((noun, index, all) => noun !== all[index - 1]);
    expect(nouns).toEqual([...new Set(nouns)]);
  });

  test('leads to headings and files that exist', () => {
    const anchors = [...page.matchAll(/^#+ (.+)$/gm)].map(([, text]) =>
      text!.toLowerCase().replaceAll(' ', '-').replaceAll('.', ''),
    );
    const links = [...page.matchAll(/\]\(([^)]+)\)/g)].map((match) => match[1]!);
    expect(links.length).toBeGreaterThan(20);
    expect(links.filter((link) => link.startsWith('#') && !anchors.includes(link.slice(1)))).toEqual([]);
    const files = links.filter((link) => !link.startsWith('#')).map((link) => link.split('#')[0]!);
    expect(files.filter((file) => !existsSync(join(root, 'docs', file)))).toEqual([]);
  });

  test.each(Object.entries(examples))('shows an input that %s takes', (name, example) => {
    expect(operationTable().get(name)?.input.safeParse(example)).toMatchObject({ success: true });
  });
});

test('docs/access.md is what the matrix says now', () => {
  expect(read('access.md')).toBe(renderAccess());
});

describe('docs/openapi.json', () => {
  const text = read('openapi.json');
  const document = JSON.parse(text) as {
    paths: Record<string, { post: { requestBody: object; security: object[]; responses: Record<string, object> } }>;
  };

  test('is what the operations say of themselves now', () => {
    expect(text).toBe(renderOpenApi());
  });

  test('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    expect(await validator.validate(JSON.parse(text) as Record<string, unknown>)).toEqual({ valid: true });
    expect(validator.version).toBe('3.1');
  });

  test('refers to nothing that it does not have', () => {
    const { components } = JSON.parse(text) as { components: { schemas: object } };
    const names = [...text.matchAll(/"\$ref": "#\/components\/schemas\/(\w+)"/g)].map((match) => match[1]);
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => !Object.keys(components.schemas).includes(name!))).toEqual([]);
    expect(text).not.toContain('$defs');
  });

  test('has every operation that HTTP does, and no other', () => {
    const names = served.filter(isForHttp).map(({ name }) => `/v1/api/${name}`);
    expect(Object.keys(document.paths).sort()).toEqual(names.sort());
  });

  test('says what each field is', () => {
    type Body = { content: { 'application/json': { schema: JsonSchema } } };
    const { paths, components } = JSON.parse(text) as {
      paths: Record<string, { post: { requestBody: Body; responses: { 200: Body } } }>;
      components: { schemas: Record<string, JsonSchema> };
    };
    const bodies = Object.values(paths).flatMap(({ post }) => [post.requestBody, post.responses[200]]);
    const schemas = bodies.map(({ content }) => content['application/json'].schema);
    expect(schemas.length).toBeGreaterThan(100);
    expect([...schemas, ...Object.values(components.schemas)].flatMap((each) => fieldsWithoutText(each))).toEqual([]);
  });

  test('asks for a session where somebody has to be signed in', () => {
    for (const { name, who } of served.filter(isForHttp)) {
      const { security } = document.paths[`/v1/api/${name}`]!.post;
      expect([name, security]).toEqual([name, who === 'anybody' ? [{}, { session: [] }] : [{ session: [] }]]);
    }
  });

  test('says of each operation how it fails', () => {
    for (const operation of served.filter(isForHttp)) {
      const { responses } = document.paths[`/v1/api/${operation.name}`]!.post;
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(['200', '400', '429', '503']));
      expect(Object.hasOwn(responses, '401')).toBe(
        operation.who !== 'anybody' || operation.errors.includes('unauthenticated'),
      );
    }
  });
});

/** The paths of the fields of a schema, and of the schemas in it, that lack a description. */
function fieldsWithoutText(schema: JsonSchema, path = ''): string[] {
  const { properties = {}, items, anyOf = [], oneOf = [] } = schema;
  return [
    ...Object.entries(properties).flatMap(([key, each]) => [
      ...(/^\S.*[.…]$/.test(each.description ?? '') ? [] : [`${path}.${key}`]),
      ...fieldsWithoutText(each, `${path}.${key}`),
    ]),
    ...(items === undefined ? [] : fieldsWithoutText(items, `${path}[]`)),
    ...[...anyOf, ...oneOf].flatMap((each) => fieldsWithoutText(each, path)),
  ];
}

/** The paths of values in a schema that have no bound of their size. */
function unbounded(schema: JsonSchema, path = ''): string[] {
  const { type, properties = {}, items, anyOf = [], maxLength, maxItems, pattern, format } = schema;
  const isOpenText = type === 'string' && schema.enum === undefined && schema.const === undefined;
  const own = [
    ...(isOpenText && maxLength === undefined && pattern === undefined && format === undefined ? [path] : []),
    ...(type === 'array' && maxItems === undefined ? [path] : []),
  ];
  return [
    ...own,
    ...Object.entries(properties).flatMap(([key, each]) => unbounded(each, `${path}.${key}`)),
    ...(items === undefined ? [] : unbounded(items, `${path}[]`)),
    ...anyOf.flatMap((each) => unbounded(each, path)),
  ];
}

describe('an operation', () => {
  test.each([...operationTable().values()])('says what each field is: $name', (operation: Operation) => {
    const { input, output, shapes } = describeOperation(operation);
    expect([input, output, ...Object.values(shapes)].flatMap((each) => fieldsWithoutText(each))).toEqual([]);
  });

  test.each([...operationTable().values()])(
    'says what it does, and bounds what it takes: $name',
    (operation: Operation) => {
      const { name, summary, input, output } = describeOperation(operation);
      expect(name).toMatch(/^[a-z]+\.[a-z]+(-[a-z]+)*$/);
      expect(summary).toMatch(/^[A-Z].*\.$/s);
      // The text of a message is exempt: the configuration bounds it.
      expect(unbounded(input).filter((path) => path !== '.text')).toEqual([]);
      expect(input.additionalProperties).toBe(false);
      for (const { path } of [...fieldsOf(input), ...fieldsOf(output)]) expect(path).toMatch(/^[a-z0-9_.[\]]+$/);
    },
  );
});
