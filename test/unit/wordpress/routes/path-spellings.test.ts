import { describe, expect, test } from 'vitest'
import { createRouter } from '../../../../src/service/router.ts'
import { siteRows } from '../../../../src/wordpress/routes/route-table.ts'
import { inOneLine } from './found.ts'

const router = createRouter(siteRows)
const get = (path: string): string => inOneLine(router.find('GET', path))

describe('spellings of one path become one', () => {
  test.each([
    ['as announced', '/site/v2/posts/5'],
    ['upper case', '/SITE/V2/Posts/5'],
    ['a slash at the end', '/site/v2/posts/5/'],
    ['several slashes at the end', '/site/v2/posts/5///'],
    ['doubled slashes', '//site//v2///posts//5'],
    ['leading zeros', '/site/v2/posts/0005'],
    ['letters percent-encoded', '/%73ite/v2/p%6Fsts/5'],
    ['digits percent-encoded', '/site/v2/posts/%35'],
    ['all of it', '//Site/%76%32/POSTS//%30%30005//'],
  ])('%s', (_what, path) => {
    const routeMatch = router.find('GET', path)
    expect(inOneLine(routeMatch)).toBe('posts.item /site/v2/posts/5')
    expect(routeMatch).toMatchObject({ pathParameters: { id: '5' } })
  })

  test.each([
    ['the root', '/', 'index /'],
    ['the root without its slash', '', 'index /'],
    ['nothing but slashes', '////', 'index /'],
    ['a number that is zero', '/site/v2/posts/000', 'posts.item /site/v2/posts/0'],
    [
      'a number with a sign where WordPress lets it in',
      '/site/v2/global-styles/+07',
      'global-styles.item /site/v2/global-styles/7',
    ],
    [
      'the largest number',
      '/site/v2/posts/9223372036854775807',
      'posts.item /site/v2/posts/9223372036854775807',
    ],
    ['a version that is a number', '/OEMBED/1.0/embed/', 'oembed.embed /oembed/1.0/embed'],
    [
      'any character where the announced pattern has a dot',
      '/oembed/1x0/proxy',
      'oembed.proxy /oembed/1.0/proxy',
    ],
    ['two identifiers', '/site/v2/posts/05/revisions/007', 'posts.revision /site/v2/posts/5/revisions/7'],
    [
      'a form',
      '/contact-form/v1/contact-forms/08/Feedback/Schema',
      'contact-forms.feedback-schema /contact-form/v1/contact-forms/8/feedback/schema',
    ],
  ])('%s', (_what, path, line) => {
    expect(get(path)).toBe(line)
  })

  test.each([
    ['as announced', '/site/v2/templates/twentytwentyfive//home'],
    ['with one slash, as servers leave it', '/site/v2/templates/twentytwentyfive/home'],
    ['with more slashes', '/site/v2/templates/twentytwentyfive////home/'],
    ['with encoded slashes', '/site/v2/templates/twentytwentyfive%2F%2Fhome'],
    ['with both', '/site/v2/templates/twentytwentyfive/%2fhome'],
  ])('the identifier of a template %s', (_what, path) => {
    const routeMatch = router.find('GET', path)
    expect(inOneLine(routeMatch)).toBe('templates.item /site/v2/templates/twentytwentyfive//home')
    expect(routeMatch).toMatchObject({ pathParameters: { id: 'twentytwentyfive//home' } })
  })

  test.each([
    ['no slash', '/site/v2/templates/home', 'templates.item /site/v2/templates/home'],
    [
      'a theme in a folder',
      '/site/v2/template-parts/themes/mine/header',
      'template-parts.item /site/v2/template-parts/themes/mine//header',
    ],
    [
      'upper case, which may mean another theme',
      '/site/v2/templates/Mine//Home',
      'templates.item /site/v2/templates/Mine//Home',
    ],
    [
      'its revisions',
      '/site/v2/templates/mine/home/revisions',
      'templates.revisions /site/v2/templates/mine//home/revisions',
    ],
    [
      'one of its revisions',
      '/site/v2/templates/mine//home/Revisions/09',
      'templates.revision /site/v2/templates/mine//home/revisions/9',
    ],
    [
      'its autosaves',
      '/site/v2/templates/mine//home/autosaves',
      'templates.autosaves /site/v2/templates/mine//home/autosaves',
    ],
    [
      'a slug that is encoded twice, as WordPress stores letters beyond ASCII',
      '/site/v2/templates/mine//%25d0%25bf',
      'templates.item /site/v2/templates/mine//%25d0%25bf',
    ],
    [
      'the lookup, which comes first',
      '/site/v2/templates/Lookup',
      'templates.lookup /site/v2/templates/lookup',
    ],
    [
      'the theme of global styles',
      '/site/v2/global-styles/themes/mine',
      'global-styles.theme /site/v2/global-styles/themes/mine',
    ],
    [
      'a theme in a folder',
      '/site/v2/global-styles/themes/all/mine',
      'global-styles.theme /site/v2/global-styles/themes/all/mine',
    ],
    [
      'a theme in a folder with an encoded slash',
      '/site/v2/global-styles/themes/all%2Fmine',
      'global-styles.theme /site/v2/global-styles/themes/all/mine',
    ],
    [
      'a theme with odd characters',
      '/site/v2/global-styles/themes/my%20theme%5b2%5d/variations',
      'global-styles.variations /site/v2/global-styles/themes/my%20theme%5B2%5D/variations',
    ],
    [
      'a theme with brackets unescaped',
      '/site/v2/global-styles/themes/a[2]/variations',
      'global-styles.variations /site/v2/global-styles/themes/a%5B2%5D/variations',
    ],
  ])('identifiers with slashes: %s', (_what, path, line) => {
    expect(get(path)).toBe(line)
  })

  test('values of identifiers are decoded', () => {
    expect(router.find('GET', '/site/v2/global-styles/themes/my%20th%C3%A9me')).toMatchObject({
      pathParameters: { stylesheet: 'my théme' },
      path: '/site/v2/global-styles/themes/my%20th%C3%A9me',
    })
  })
})

describe('paths that the upstream may read as another route are refused', () => {
  test.each([
    ['a parent folder', '/site/v2/posts/../pages', 'dot-segment'],
    ['this folder', '/site/v2/./posts', 'dot-segment'],
    ['a parent folder at the end', '/site/v2/posts/..', 'dot-segment'],
    ['an encoded parent folder', '/site/v2/posts/%2e%2E/pages', 'dot-segment'],
    ['half-encoded dots', '/site/v2/.%2e/x', 'dot-segment'],
    ['dots between encoded slashes', '/site/v2/templates/a%2F..%2Fb', 'dot-segment'],
    ['an encoded slash between names', '/site/v2%2Fposts', 'encoded-slash'],
    ['an encoded slash behind a number', '/site/v2/posts/5%2F', 'encoded-slash'],
    ['an encoded slash in a path that no row has', '/site/v2/unknown/a%2fb', 'encoded-slash'],
    ['an encoded slash that hides a longer route', '/site/v2/templates/mine%2Frevisions', 'encoded-slash'],
    ['an identifier that is a slash', '/site/v2/templates/%2F%2F', 'encoded-slash'],
    [
      'a template that is read as revisions when slashes are kept',
      '/site/v2/templates/x/revisions',
      'ambiguous-identifier',
    ],
    ['a backslash', '/site/v2\\posts', 'backslash'],
    ['an encoded backslash', '/site/v2/posts%5c5', 'backslash'],
    ['an encoded NUL', '/site/v2/posts/5%00', 'control-character'],
    ['an encoded line feed', '/site/v2/posts/5%0A', 'control-character'],
    ['an encoded DEL', '/site/v2/posts/5%7F', 'control-character'],
    ['a tab', '/site/v2/posts/5\t', 'control-character'],
    ['a space', '/site/v2/posts/ 5', 'bad-encoding'],
    ['a letter beyond ASCII that is not encoded', '/site/v2/posts/é', 'bad-encoding'],
    ['a broken escape', '/site/v2/posts/%5', 'bad-encoding'],
    ['an escape without digits', '/site/v2/posts/%zz', 'bad-encoding'],
    ['an overlong slash', '/site/v2%C0%AFposts', 'bad-encoding'],
    ['an overlong dot', '/site/v2/%C0%AE%C0%AE/posts', 'bad-encoding'],
    ['a surrogate', '/site/v2/%ED%A0%80', 'bad-encoding'],
    ['half a character', '/site/v2/%C3', 'bad-encoding'],
    ['a fragment', '/site/v2/posts#5', 'bad-encoding'],
    ['a query', '/site/v2/posts?x', 'bad-encoding'],
    ['no slash at the beginning', 'site/v2/posts', 'not-absolute'],
    ['an address', 'http://elsewhere/site/v2/posts', 'not-absolute'],
    ['a number that no database has', `/site/v2/posts/${'9'.repeat(20)}`, 'too-long'],
    ['an identifier that no theme has', `/site/v2/templates/${'a'.repeat(513)}`, 'too-long'],
    ['a long path', `/site/v2/${'a/'.repeat(1100)}`, 'too-long'],
  ])('%s', (_what, path, reason) => {
    expect(get(path)).toBe(`refused: ${reason}`)
  })
})

describe('paths without a row keep their meaning', () => {
  test.each([
    ['a file behind an item', '/site/v2/posts/1/x.css', '/site/v2/posts/1/x.css'],
    ['a path parameter', '/site/v2/posts/1;x.js', '/site/v2/posts/1;x.js'],
    ['a dot at the end', '/site/v2/posts.', '/site/v2/posts.'],
    ['letters as a number', '/site/v2/posts/abc', '/site/v2/posts/abc'],
    ['an encoded fragment', '/site/v2/posts/5%23x', '/site/v2/posts/5%23x'],
    ['an encoded question mark', '/site/v2/posts%3fx=1', '/site/v2/posts%3Fx=1'],
    ['an encoded percent sign', '/site/v2/posts/%2535', '/site/v2/posts/%2535'],
    ['doubled slashes', '/Plugin//v1/things/', '/Plugin/v1/things'],
    ['other encodings', '/plugin/v1/%d0%bf%20%7e', '/plugin/v1/%D0%BF%20~'],
    ['characters that need an escape', '/plugin/v1/a|b"c<d>', '/plugin/v1/a%7Cb%22c%3Cd%3E'],
    ['a host', '//elsewhere.example/x', '/elsewhere.example/x'],
  ])('%s', (_what, path, sent) => {
    expect(get(path)).toBe(`unlisted ${sent}`)
  })
})
