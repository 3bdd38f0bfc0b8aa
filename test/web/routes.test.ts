import { expect, test } from '@jest/globals';
import { parseRoute, pathOf } from '../../web/core/routes.ts';

test.each([
  ['/', '/', { screen: 'list' }],
  ['/c/7', '/', { screen: 'conversation', conversation: 7, seq: null }],
  ['/chat/c/7/42', '/chat/', { screen: 'conversation', conversation: 7, seq: 42 }],
] as const)('%s below %s is a screen, and its path', (path, base, route) => {
  expect(parseRoute(path, base)).toEqual(route);
  expect(pathOf(route, base)).toBe(path);
});

test.each(['/c/0', '/c/07', '/c/x', '/c/7/', '/c/7/0', '/c/7/42/1', '/v1/sign-in', '/c/1234567890123456'])(
  '%s is the list',
  (path) => {
    expect(parseRoute(path, '/')).toEqual({ screen: 'list' });
  },
);
