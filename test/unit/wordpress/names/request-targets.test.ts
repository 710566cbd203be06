import { describe, expect, test } from 'vitest'
import { createNameSwap } from '../../../../src/wordpress/names/urls.ts'
import { names } from './wordpress-names.ts'

describe('a public path becomes the upstream path', () => {
  test.each([
    ['the root', '/', '/'],
    ['a route outside the namespaces', '/batch/v1', '/batch/v1'],
    ['a namespace index', '/site/v2', '/wp/v2'],
    ['a collection', '/site/v2/posts', '/wp/v2/posts'],
    ['an item', '/site/v2/posts/5/revisions/7', '/wp/v2/posts/5/revisions/7'],
    ['contact forms', '/contact-form/v1/contact-forms/3', '/contact-form-7/v1/contact-forms/3'],
    ['a namespace that is the same on both sides', '/oembed/1.0/embed', '/oembed/1.0/embed'],
    ['an unlisted collection', '/site/v2/site_pattern_category/4', '/wp/v2/wp_pattern_category/4'],
    [
      'a name further down is data',
      '/site/v2/taxonomies/site_pattern_category',
      '/wp/v2/taxonomies/site_pattern_category',
    ],
    ['a longer vendor', '/site-x/v2/posts', '/site-x/v2/posts'],
    ['another version', '/site/v20/posts', '/site/v20/posts'],
    ['a template with slashes', '/site/v2/templates/theme//home', '/wp/v2/templates/theme//home'],
    ['upper case, as WordPress compares', '/SITE/V2/posts', '/wp/v2/posts'],
    ['doubled slashes', '//site//v2//posts', '//wp/v2//posts'],
    ['escaped letters', '/%73ite/v2/posts', '/wp/v2/posts'],
    ['a broken escape', '/%zzsite/v2/posts', '/%zzsite/v2/posts'],
    ["WordPress's own spelling is no second name of a route", '/wp/v2/posts', '/site/v2/posts'],
    ['nor in other letters', '/%57P/V2/posts', '/site/v2/posts'],
  ])('%s', (_what, path, expected) => {
    expect(names().toUpstreamTarget(path, '')).toBe(expected)
  })
})

describe('a public query becomes the upstream query', () => {
  test.each([
    ['no name of the table', 'page=2&per_page=5', 'page=2&per_page=5'],
    ['a parameter', 'site_id=5', 'wp_id=5'],
    ['a parameter without a value', 'site_id', 'wp_id'],
    [
      'a list',
      'site_pattern_category[]=1&site_pattern_category[]=2',
      'wp_pattern_category[]=1&wp_pattern_category[]=2',
    ],
    [
      'a term filter',
      'site_pattern_category_exclude%5Bterms%5D=1',
      'wp_pattern_category_exclude%5Bterms%5D=1',
    ],
    ['nested names', 'meta[site_pattern_sync_status]=partial', 'meta[wp_pattern_sync_status]=partial'],
    ['a longer name', 'site_idx=1&xsite_id=2', 'site_idx=1&xsite_id=2'],
    ['a value is data', 'search=site_id', 'search=site_id'],
    [
      'names in _fields',
      '_fields=id,meta.site_pattern_sync_status',
      '_fields=id,meta.wp_pattern_sync_status',
    ],
    ['names in an escaped _fields', '_fields=id%2Csite_id', '_fields=id,wp_id'],
    ['names in _fields[]', '_fields[]=site_id', '_fields[]=wp_id'],
    ['names in _embed', '_embed=author,site_pattern_category', '_embed=author,wp_pattern_category'],
    ['link relations in _embed', '_embed=wp:term', '_embed=wp:term'],
    ['the namespace of an index', 'namespace=site/v2', 'namespace=wp/v2'],
    ['the same, escaped', 'namespace=site%2Fv2', 'namespace=wp%2Fv2'],
    ["WordPress's own spelling means nothing", 'wp_id=5', 'site_id=5'],
    [
      'nor the spellings that PHP reads as it',
      'wp.id=5&wp+id=6&+wp_id=7&wp_id%00x=8',
      'site_id=5&site_id=6&site_id=7&site_id=8',
    ],
    ['a name never opens a second parameter', 'site_id[%26force=true]=1', 'wp_id[%26force=true]=1'],
    ['broken escapes stay', 'site_id=%zz&%zz=1', 'wp_id=%zz&%zz=1'],
    ['empty parameters stay', '&&a=&=b', '&&a=&=b'],
  ])('%s', (_what, query, expected) => {
    expect(names().toUpstreamTarget('/site/v2/blocks', query)).toBe(`/wp/v2/blocks?${expected}`)
  })
})

test('with `names: same` targets stay the same', () => {
  expect(names({ mode: 'same' }).toUpstreamTarget('/wp/v2/blocks', 'wp_id=5')).toBe('/wp/v2/blocks?wp_id=5')
})

test('a table with one name in two pairs is refused at start', () => {
  const twice = [
    { neutral: 'a', wordpress: 'b' },
    { neutral: 'c', wordpress: 'b' },
  ]
  expect(() => createNameSwap({ namespaces: [], keys: twice, segments: [] })).toThrow(/ambiguous/)
})
