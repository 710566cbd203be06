import fc from 'fast-check'
import { type RequestCase, read, words } from '../request-case.ts'

/** Parameters that WordPress reads although no route declares them, and spellings in which names and values are read. */
const chosen: readonly RequestCase[] = words(`
  posts?excerpt_length=10&per_page=3 posts/5?excerpt_length=5 posts?include=108&password=secret
  posts?include=108&password=wrong posts?lang=de&per_page=2 posts?acf_format=standard&per_page=1&page=2
  posts?a=1&a=2&per_page=1 posts?a[]=1&a=2&per_page=1 posts?a=1&a[]=2&per_page=1 posts?b=1&a=2&per_page=1
  posts?a.b=1&per_page=1 posts?a%20b=1&per_page=1 posts?a[b=1&per_page=1 posts?a[b][c]=1&per_page=1
  posts?a[2]=x&a[]=y&a[0]=z&per_page=1 posts?a&per_page=1 posts?a=&per_page=1 posts?=1&per_page=1
  posts?a=%FF&per_page=1 posts?%FF=1&per_page=1 posts?a[x]=%E9&per_page=1 posts?a=%00&per_page=1
  posts?a=%26b%3D1&per_page=1 posts?a%26b=1&per_page=1 posts?a=b%23c&per_page=1 posts?a=%2B&per_page=1
  posts?a=%F0%9F%8C%B1&per_page=1 posts?%C3%A9=1&per_page=1 posts?0=1&per_page=1 posts?a[0][1][2][3]=x&per_page=1
  pages?_envelope=1&lang=de&per_page=1 categories?lang=de users?lang=de media?lang=de&per_page=1
  posts?s=day&per_page=1 posts?p=6 posts?cat=2&per_page=1 posts?page_id=2&per_page=1 posts?m=202503&per_page=1
  posts?preview=true&per_page=1 posts?posts_per_page=1 posts?feed=rss2&per_page=1 posts?name=hello-world&per_page=1
`).map((target) => read(`/wp/v2/${target}`))

/** Nothing here begins like a parameter of WordPress or one on the list of tracking parameters. */
const name = fc.stringMatching(/^x[a-z0-9_.~ -]{0,8}$/)
const key = fc.oneof(fc.constant(''), fc.stringMatching(/^[a-z0-9]{1,4}$/), fc.nat(20).map(String))
const value = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.stringMatching(/^[ -~]{0,12}$/),
  fc.integer().map(String),
)
const parameter = fc.tuple(name, fc.array(key, { maxLength: 3 }), value).map(([base, keys, text]) => {
  const brackets = keys.map((one) => `[${encodeURIComponent(one)}]`).join('')
  return `${encodeURIComponent(base)}${brackets}=${encodeURIComponent(text)}`
})
const query = fc.array(parameter, { minLength: 1, maxLength: 4 })

/** Always the same hundred. */
const random: readonly RequestCase[] = fc
  .sample(query, { seed: 20_261_122, numRuns: 100 })
  .map((parameters) => read(`/wp/v2/posts?per_page=1&${parameters.join('&')}`))

export const unknownParameterCases: readonly RequestCase[] = [...chosen, ...random]
