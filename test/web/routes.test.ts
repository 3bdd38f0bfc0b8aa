import { expect, test } from '@jest/globals';
import { parseRoute, pathOf } from '../../web/core/routes.ts';

test.each([
  ['/', '/', { screen: 'list' }],
  ['/c/7', '/', { screen: 'conversation', conversation: 7, seq: null }],
  ['/chat/c/7/42', '/chat/', { screen: 'conversation', conversation: 7, seq: 42 }],
  ['/c/7/about', '/', { screen: 'conversation', conversation: 7, seq: null, panel: 'about' }],
  ['/chat/c/7/42/about', '/chat/', { screen: 'conversation', conversation: 7, seq: 42, panel: 'about' }],
  ['/c/7/integration', '/', { screen: 'conversation', conversation: 7, seq: null, panel: 'integration' }],
  ['/c/7/hooks', '/', { screen: 'conversation', conversation: 7, seq: null, panel: 'hooks' }],
  ['/c/7/42/hooks/5', '/', { screen: 'conversation', conversation: 7, seq: 42, panel: 'hooks', hook: 5 }],
  ['/settings', '/', { screen: 'settings', part: null }],
  ['/chat/settings/sessions', '/chat/', { screen: 'settings', part: 'sessions' }],
] as const)('%s below %s is a screen, and its path', (path, base, route) => {
  expect(parseRoute(path, base)).toEqual(route);
  expect(pathOf(route, base)).toBe(path);
});

test.each([
  '/c/0',
  '/c/07',
  '/c/x',
  '/c/7/',
  '/c/7/0',
  '/c/7/42/1',
  '/c/1234567890123456',
  '/c/7/about/',
  '/c/7/about/5',
  '/c/7/hooks/0',
  '/c/7/hooks/x',
  '/c/about',
  '/settings/',
  '/settings/nothing',
  '/settings/profile/x',
  '/v1/sign-in',
])('%s is the list', (path) => {
  expect(parseRoute(path, '/')).toEqual({ screen: 'list' });
});
