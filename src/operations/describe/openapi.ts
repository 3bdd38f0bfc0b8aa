import { errorKinds } from '../../errors.ts';
import {
  commonErrors,
  describeOperation,
  isForHttp,
  type JsonSchema,
  type OperationDescription,
} from './operation-docs.ts';
import type { Operation } from '../core/operation.ts';

/**
 * The OpenAPI 3.1 document of `POST /v1/api/<operation>`. It leaves out operations that only live connections or the
 * command line can call. `url` is the address of the server.
 */
export function openApiDocument(
  operations: Iterable<Operation>,
  about: { readonly version: string; readonly url: string },
): object {
  const served = [...operations].filter(isForHttp);
  const described = served.map((operation) => ({ operation, description: describeOperation(operation) }));
  const shapes = Object.assign({}, ...described.map(({ description }) => description.shapes)) as Record<
    string,
    JsonSchema
  >;
  const paths = described.map(({ operation, description }) => [
    `/v1/api/${operation.name}`,
    { post: openApiOperation(operation, description) },
  ]);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Klatch',
      version: about.version,
      summary: 'Operations of a Klatch server, for clients and bots.',
    },
    servers: [{ url: about.url }],
    tags: [...new Set(served.map(({ name }) => tagOf(name)))].map((name) => ({ name })),
    paths: Object.fromEntries(paths) as object,
    components: {
      securitySchemes: { session: { type: 'http', scheme: 'bearer', description: "A session's or a bot's token." } },
      schemas: { ...toComponentRefs(shapes), Problem: ERROR_RESPONSE_SCHEMA },
    },
  };
}

const ERROR_RESPONSE_SCHEMA = {
  type: 'object',
  properties: {
    message: { type: 'string', description: 'A sentence that a person can act on.' },
    code: { type: 'string', enum: Object.keys(errorKinds), description: 'What went wrong, for programs.' },
  },
  required: ['message', 'code'],
};

const tagOf = (name: string): string => name.split('.', 1)[0]!;

function openApiOperation(operation: Operation, description: OperationDescription): object {
  const { name, who } = operation;
  const { summary, input, output } = description;
  const sessionSecurity = { session: [] };
  const isInputNeeded = (input.required ?? []).length > 0;
  return {
    operationId: name,
    tags: [tagOf(name)],
    summary,
    description: description.who,
    security: who === 'anybody' ? [{}, sessionSecurity] : [sessionSecurity],
    requestBody: { required: isInputNeeded, content: { 'application/json': { schema: toComponentRefs(input) } } },
    responses: {
      200: { description: 'Done.', content: { 'application/json': { schema: toComponentRefs(output) } } },
      ...errorResponses(description),
    },
  };
}

/** The responses by HTTP status. Each names the error codes that have its status. */
function errorResponses({ errors }: OperationDescription): Record<string, object> {
  const byStatus = new Map<number, string[]>();
  for (const code of new Set([...errors, ...commonErrors])) {
    const { status, sentence } = errorKinds[code];
    const lines = byStatus.get(status) ?? [];
    lines.push(`${code}: ${sentence}`);
    byStatus.set(status, lines);
  }
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/Problem' } } };
  const responses = [...byStatus].map(([status, lines]) => [status, { description: lines.join('\n'), content }]);
  return Object.fromEntries(responses) as Record<string, object>;
}

/** Changes references to named schemas, so that they lead to the place where an OpenAPI document has these schemas. */
function toComponentRefs<T>(schema: T): T {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/')) as T;
}
