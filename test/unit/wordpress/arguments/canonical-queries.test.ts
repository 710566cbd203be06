import { describe, expect, test } from 'vitest'
import { createSiteValidator } from '../../../../src/wordpress/arguments/site-validator.ts'
import { argumentsOf, ask, canonical, siteOptions } from './support.ts'

describe('one meaning, one spelling', () => {
  test.each([
    ['nothing', '', ''],
    ['defaults are dropped', 'page=1&per_page=10&order=desc&orderby=date&context=view&status=publish', ''],
    [
      'and so are their other spellings',
      'page=01&per_page=1e1&status[]=Publish&include=&author[]=1',
      'author=1',
    ],
    [
      'parameters are sorted',
      'search=a&after=2026-02-01T00:00:00&per_page=5',
      'after=2026-02-01T00:00:00&per_page=5&search=a',
    ],
    ['integers', 'per_page=%20%2B05.0', 'per_page=5'],
    ['integers beyond 2^53 stay apart', 'offset=9007199254740993', 'offset=9007199254740993'],
    ['offset 0 is not no offset', 'offset=-0', 'offset=0'],
    ['booleans', 'sticky=TRUE', 'sticky=true'],
    ['booleans by number', 'sticky=0', 'sticky=false'],
    ['lists by comma', 'include=5,6', 'include=5,6'],
    ['lists by space', 'include=6+5', 'include=5,6'],
    ['lists by brackets', 'include[]=6&include[]=5&include[]=6', 'include=5,6'],
    ['lists by index', 'include[1]=5&include[0]=6', 'include=5,6'],
    ['a list of one', 'exclude=5', 'exclude=5'],
    ['an order that counts', 'orderby=include&include=6,5,6', 'include=6,5&orderby=include'],
    ['an order that counts, of slugs', 'slug=b,a&orderby=include_slugs', 'orderby=include_slugs&slug=b,a'],
    ['slugs otherwise', 'slug=b,a', 'slug=a,b'],
    ['slugs that look like numbers', 'slug=007', 'slug=007'],
    ['slugs with a comma', 'slug[]=a,b', 'slug%5B%5D=a,b'],
    ['an empty list is not an absent one', 'slug=', 'slug='],
    ['a list of nothing', 'slug[]=', 'slug%5B%5D='],
    ['an empty search is not an absent one', 'search=', 'search='],
    ['searches keep their case and spaces', 'search=+Foo%20%20bar', 'search=%20Foo%20%20bar'],
    ['escapes', "search=%61%C3%A9'(*)!%2F", 'search=a%C3%A9%27%28%2A%29%21%2F'],
    ['dates with a zone', 'after=2026-02-01T02:00:00.5%2B02:00', 'after=2026-02-01T00:00:00Z'],
    ['dates without a zone', 'before=2026-02-01%2000:00:00', 'before=2026-02-01T00:00:00'],
    ['statuses', 'status=draft,PUBLISH', 'status=draft,publish'],
    ['term lists', 'categories[]=3&categories[]=2', 'categories=2,3'],
    [
      'term objects with defaults',
      'categories[terms]=3,2&categories[operator]=OR&categories[include_children]=0',
      'categories=2,3',
    ],
    [
      'term objects',
      'tags[operator]=AND&tags[terms][]=3&tags[terms][]=2',
      'tags%5Boperator%5D=AND&tags%5Bterms%5D=2,3',
    ],
    ['term objects without terms', 'tags[terms]=', 'tags%5Bterms%5D='],
    ['term lists without terms', 'tags=,', 'tags=,'],
    ['folded names', 'per.page=5', 'per_page=5'],
    ['equal names', 'per_page=5&per%20page=6', 'per_page=6'],
    ['unknown parameters', 'foo=1&utm_source=x&fbclid=y&page=2', 'page=2'],
    [
      'parameters that would change the request',
      '_method=DELETE&rest_route=/x&rest.route=/y&page=2',
      'page=2',
    ],
    ['fields', '_fields=title,id,title', '_fields=id,title'],
    ['fields as a list', '_fields[]=title&_fields[]=id', '_fields=id,title'],
    [
      'fields and their parts',
      '_fields=title.raw,id,title,title.rendered.x',
      '_fields=title.raw,id,title,title.rendered.x',
    ],
    ['parts in front of their whole', '_fields=title.raw,id,title', '_fields=id,title'],
    ['no fields', '_fields=&page=2', 'page=2'],
    ['a field with a comma', '_fields[]=a,b', '_fields%5B%5D=a,b'],
    ['embed everything, bare', '_embed', '_embed=1'],
    ['embed everything, true', '_embed=true', '_embed=1'],
    ['embed everything, 0', '_embed=0', '_embed=1'],
    ['embed some', '_embed=wp:term,author,author', '_embed=author,wp:term'],
    ['embed the relation 1', '_embed[]=1', '_embed%5B%5D=1'],
    ['envelope', '_envelope=0', '_envelope=1'],
    ['pretty', '_pretty', '_pretty=1'],
    ['locale of the user', '_locale=user', '_locale=user'],
    ['any other locale', '_locale=de_DE', ''],
    ['callback', '_jsonp=my.cb', '_jsonp=my.cb'],
    ['no callback', '_jsonp=0', ''],
    ['a callback that is none', '_jsonp=alert(1)', '! rest_callback_invalid'],
    ['nonce', '_wpnonce=abc', '_wpnonce=abc'],
    ['bytes that are not UTF-8', 'search=%FF', '! rest_invalid_param'],
    ['bytes that are not UTF-8 in what every route knows', '_fields=%FF', '! rest_invalid_param'],
    ['bytes that are not UTF-8 in what no route knows', 'foo=%FF', ''],
  ])('%s: %s', (_, query, expected) => {
    expect(canonical(query)).toBe(expected)
    if (!expected.startsWith('!')) expect(canonical(expected)).toBe(expected)
  })

  test.each([
    [
      'menu items have a larger page and another order',
      'menu-items.collection',
      'per_page=100&order=asc&orderby=menu_order',
      '',
    ],
    [
      'for which ten is no default',
      'menu-items.collection',
      'per_page=10&order=desc',
      'order=desc&per_page=10',
    ],
    ['media have another status', 'media.collection', 'status=inherit', ''],
    ['revisions have no default page size', 'posts.revisions', 'per_page=10', 'per_page=10'],
    [
      'what has no type is compared as text',
      'oembed.embed',
      'url=http://x/&maxwidth=600&format=json',
      'url=http:%2F%2Fx%2F',
    ],
    ['and kept as text', 'oembed.embed', 'url=x&maxwidth=0600', 'maxwidth=0600&url=x'],
    [
      'routes without declared arguments get what was sent',
      'contact-forms.collection',
      'search=b&utm_source=x&a[k]=1&a[]=2',
      'a%5Bk%5D=1&a%5B0%5D=2&search=b',
    ],
    ['except what would change the request', 'contact-forms.collection', '_method=PUT&rest_route=/x', ''],
  ])('%s', (_, row, query, expected) => {
    expect(canonical(query, row)).toBe(expected)
    expect(canonical(expected, row)).toBe(expected)
  })
})

describe('unknown parameters of a service that forwards them', () => {
  const validator = createSiteValidator({ ...siteOptions, unknownParameters: 'forward' })

  test.each([
    ['are kept, sorted, in one form', 'zeta=1&alpha=%32&page=2', 'alpha=2&page=2&zeta=1'],
    ['keep their keys and order', 'x[b]=1&x[a]=2&x[]=3', 'x%5Bb%5D=1&x%5Ba%5D=2&x%5B0%5D=3'],
    ['without the tracking ones', 'utm_source=x&utm.medium=y&zeta=1', 'zeta=1'],
    ['without those that change the request', '_method=DELETE&rest.route=/x&zeta=1', 'zeta=1'],
  ])('%s', (_, query, expected) => {
    expect(ask({ query }, validator)).toMatchObject({ kind: 'valid', query: expected })
    expect(ask({ query: expected }, validator)).toMatchObject({ kind: 'valid', query: expected })
  })

  test.each([
    ['bytes that are no text', 'zeta=a%ff%20b&eta[k]=%E9', 'eta%5Bk%5D=%E9&zeta=a%FF%20b'],
    ['bytes among text', 'zeta=%C3%A9%E9', 'zeta=%C3%A9%E9'],
  ])('keep %s', (_, query, expected) => {
    expect(ask({ query }, validator)).toMatchObject({ kind: 'valid', query: expected })
    expect(ask({ query: expected }, validator)).toMatchObject({ kind: 'valid', query: expected })
  })

  test('are reported by name, tracking parameters excepted', () => {
    const query = 'zeta=1&utm_source=x&page=2&my.area=3'
    const names = ['zeta', 'my_area']
    expect(ask({ query }, validator)).toMatchObject({ undeclared: { handling: 'sent', names } })
    expect(ask({ query })).toMatchObject({ undeclared: { handling: 'stripped', names } })
    expect(ask({ query: 'page=2&utm_source=x' })).not.toHaveProperty('undeclared')
  })

  test('are refused when they cannot be written', () => {
    const deep = `zeta${'[a]'.repeat(17)}=1`
    expect(ask({ query: deep }, validator)).toMatchObject({ kind: 'invalid', status: 400 })
  })
})

describe('a write', () => {
  const create = { row: 'posts.collection', method: 'POST' }

  test('keeps parameters of the query that the content does not have', () => {
    expect(ask({ ...create, query: 'sticky=1&_fields=id', content: '{"title":"a"}' })).toMatchObject({
      query: '_fields=id&sticky=true',
      arguments: { sticky: true, title: 'a', _fields: ['id'] },
    })
  })

  test('drops parameters of the query that the content overrides', () => {
    expect(
      ask({ ...create, query: 'sticky=1&_embed=1', content: '{"sticky":false,"_embed":"x"}' }),
    ).toMatchObject({
      query: '_embed=1',
      arguments: { sticky: false },
    })
  })

  test('uses the query where the content has null', () => {
    expect(ask({ ...create, query: 'status=draft', content: '{"status":null}' })).toMatchObject({
      query: 'status=draft',
      arguments: { status: 'draft' },
    })
  })
})

describe('typed arguments', () => {
  test('have their defaults', () => {
    expect(argumentsOf({ row: 'menu-items.collection' })).toMatchObject({
      per_page: 100,
      order: 'asc',
      page: 1,
      include: [],
    })
  })

  test('come from path, query and content', () => {
    const asked = {
      row: 'posts.item',
      method: 'PUT',
      path: { id: '5' },
      query: 'sticky=1',
      content: '{"author":"3"}',
    }
    expect(argumentsOf(asked)).toEqual({ id: 5, sticky: true, author: 3 })
  })

  test('include a nonce, so that the response is not stored', () => {
    expect(argumentsOf({ query: '_wpnonce=x' })).toHaveProperty('_wpnonce', 'x')
    expect(argumentsOf({})).not.toHaveProperty('_wpnonce')
  })

  test('include the global parameters', () => {
    expect(argumentsOf({ query: '_embed=a,b&_envelope&_fields=id&_jsonp=cb' })).toMatchObject({
      _embed: ['a', 'b'],
      _envelope: true,
      _fields: ['id'],
      _jsonp: 'cb',
    })
  })
})
