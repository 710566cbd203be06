import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

type Row = {
  readonly pattern: RegExp
  /** What to write, or why not to write it. */
  readonly plain: string
  /** A text in which the pattern is found. */
  readonly example: string
}

/** Nouns of people, after which a relative clause with "who" has a subject. */
const people =
  'clients?|readers?|callers?|users?|editors?|visitors?|operators?|people|persons?|those|anyone|someone|everyone|others?|teams?'

/** Names and phrases that do not occur any more. A text has no line breaks and no code when it is searched. */
const banned: readonly Row[] = [
  // Names that meant several things.
  {
    pattern: /(?<!\bin (?:its|their) )\bplaces?\b(?! of\b)/i,
    plain: 'queue slot, position, index, state: which one it is',
    example: 'a place in the queue',
  },
  { pattern: /\blandings?\b/i, plain: 'outcome of a fetch', example: 'what a landing brings' },
  { pattern: /\berrands?\b/i, plain: 'fetch request', example: 'one errand for all' },
  { pattern: /\baskers?\b/i, plain: 'client, or the request that was sent', example: 'the asker has gone' },
  { pattern: /(?<!\bin[ -])\bflights?\b/i, plain: 'upstream request, fetch', example: 'it joins a flight' },
  { pattern: /(?<!\bmakes? )\brooms?\b/i, plain: 'folder, bytes, capacity', example: 'the cache room' },
  { pattern: /\bhand(?:s|ed)?-?overs?\b/i, plain: 'streamed response', example: 'a hand-over streams' },
  {
    pattern: /\b(?:a|an|one|each|the same|second) forward\b/i,
    plain: 'upstream request',
    example: 'from one forward',
  },
  { pattern: /\bunder way\b/i, plain: 'in flight', example: 'requests under way' },
  // Sentences without a subject.
  { pattern: /\bnobody\b/i, plain: 'no client, no request', example: 'shared with nobody' },
  { pattern: /\beverybody\b/i, plain: 'every client, all', example: 'it fails for everybody' },
  { pattern: /\bwhoever\b/i, plain: 'the client that', example: 'whoever else writes' },
  {
    pattern: new RegExp(
      `(?<!\\b(?:${people}) )\\bwho (?:has|had|have|leaves?|left|came|comes|asks?|asked|answered|waits?|waited|wants?|reads?|writes?|sends?|hears?|throws|takes?|took|gets?|began|begins|is|was|else)\\b`,
      'i',
    ),
    plain: 'a clause with a subject: "clients that …"',
    example: '429 for who has asked too often',
  },
  {
    pattern: /(?:^|[.;:] )(?:what|who) [^.;:]{3,80}, (?:is|are) (?:for|let|left|kept)\b/i,
    plain: 'subject, verb, object',
    example: 'What does not fit in, is left to the upstream.',
  },
  // Code is not a person, and nothing walks past a cache.
  {
    pattern: /\b(?:is|are|was|were|be|been) told\b(?! apart)/i,
    plain: 'is notified, receives',
    example: 'the parent is told',
  },
  { pattern: /\bwould tell\b/i, plain: 'would report', example: 'no phase that would tell them' },
  { pattern: /\b(?:is|are|was|were) let\b/i, plain: 'is allowed, is dropped', example: 'who is let go' },
  { pattern: /\b(?:go|goes|went|gone|leads?) past\b/i, plain: 'bypasses', example: 'it goes past the cache' },
  { pattern: /\bpast the (?:cache|gateway)\b/i, plain: 'bypasses', example: 'a nonce: past the cache' },
  {
    pattern: /\bpass(?:es|ed)? by (?:it|the gateway)\b/i,
    plain: 'bypasses',
    example: 'when most writes pass by it',
  },
  { pattern: /\bunwatched\b/i, plain: 'its result is ignored', example: 'it goes on, unwatched' },
  { pattern: /\bbrings? [\w ]{1,30} along\b/i, plain: 'also starts', example: 'brings both services along' },
  {
    pattern: /\b(?:speaks?|says?) (?:nothing )?of (?:its|the|their) (?:caller|whole|key)\b/i,
    plain: 'identifies, describes',
    example: 'a field that says nothing of its caller',
  },
  { pattern: /\btells? of\b/i, plain: 'reports', example: 'a request that tells of changes' },
  {
    pattern: /\b(?:tells?|told|telling) [\w'… ]{1,40}? apart\b/i,
    plain: 'distinguishes',
    example: 'their ids tell requests apart',
  },
  {
    pattern:
      /\b(?:gateway|upstream|companion|cache|process|ledger|worker|parent|server|browser|WordPress|Redis|member|instance|node|kernel|proxy|plugin|response|table|document)(?:e?s)? (?:knows?|wants?|believes?|remembers?|thinks?|notices?|hears?|understands?|forgets?|tells?|told|asks?|asked)\b/i,
    plain: 'has, requests, trusts, stores, receives, removes, sends',
    example: 'the upstream knows its tags',
  },
  { pattern: /\bbeliev(?:e|es|ed)\b/i, plain: 'trusts, uses', example: 'a header that is believed' },
  { pattern: /\bhears? of\b/i, plain: 'receives', example: 'members that hear of writes' },
  { pattern: /\bleft alone\b/i, plain: 'gets no requests', example: 'a target that fails is left alone' },
  {
    pattern: /\b(?:is|are|was|were) (?:not )?(?:even )?looked at\b/i,
    plain: 'is checked',
    example: 'a request is not even looked at',
  },
  {
    pattern: /\btakes? (?:[\w']+ ){1,5}along\b/i,
    plain: 'is removed with it',
    example: 'a rule takes its responses along',
  },
  { pattern: /\b(?:becomes?|became) of\b/i, plain: 'the outcome', example: 'what became of a request' },
  { pattern: /\bas (?:it|they) came\b/i, plain: 'unchanged', example: 'it goes on as it came' },
  {
    pattern: /\bwhen (?:its|the|a) (?:client|reader|caller) goes\b/i,
    plain: 'disconnects',
    example: 'when the client goes, nothing more begins',
  },
  // Things that have a name.
  { pattern: /\b(?:some|any)body\b/i, plain: 'a client', example: "somebody else's field" },
  { pattern: /\bof ours\b/i, plain: 'trusted, own', example: 'a proxy of ours' },
  {
    pattern: /\b(?:when|if|where) (?:it|the text) is none\b/i,
    plain: 'for any other text',
    example: 'undefined when it is none',
  },
  {
    pattern: /\bnothing of (?:it|its|the|what|this|one)\b/i,
    plain: 'no part of, does not',
    example: 'nothing of it has run',
  },
  {
    pattern:
      /\bof (?:its|their|his) own(?=[.,;:)…]| (?:in|for|with|and|or|which|that|to|has|have|is|are|by|as|means|would|at|on)\b|$)/i,
    plain: 'its own …, a separate …',
    example: 'a request of its own',
  },
  {
    pattern: /\b(?:that|which) (?:is|are) none\b/i,
    plain: 'that is not, an invalid one',
    example: 'an index that is none is refused',
  },
  {
    pattern:
      /(?:^|[.;:] )what (?:is|was|are|were|has|had|comes?|came|waits|looks|hangs|changes|ignores|depends|turns)\b(?! (?:it|this|that|you|the)\b)[^.;:,?]{2,60}? (?:is|are|was|were|stays?|goes|counts|leaves|keeps|ends|does|gets?|passes|makes|matters|has|have)\b/i,
    plain: 'a sentence whose subject is a noun',
    example: 'What is not understood is refused.',
  },
  {
    pattern: /\bso (?:many|few)\b(?! that\b)/i,
    plain: 'at most, the number',
    example: 'one address has so many and no more',
  },
  { pattern: /\btime is over\b/i, plain: 'timeout has passed', example: 'when its time is over' },
  {
    pattern: /\bbrings (?:little|much)\b/i,
    plain: 'sends few, sends many',
    example: 'a client that brings much',
  },
  { pattern: /\bthe state before\b/i, plain: 'older data', example: 'shows the state before' },
  { pattern: /\banswered write\b/i, plain: 'acknowledged write', example: 'after an answered write' },
  {
    pattern: /\bfor you alone\b/i,
    plain: 'from this machine only',
    example: 'a port for you alone',
  },
  { pattern: /\bthe (?:latter|former)\b/i, plain: 'its name', example: 'most proxies write the latter' },
  {
    pattern: /\blearns? of\b/i,
    plain: 'receives, finds',
    example: 'other members do not learn of those',
  },
  {
    pattern: /\b(?:each|every|which|whichever|what) doors?\b/i,
    plain: 'the kind of request',
    example: 'writes by every door',
  },
  { pattern: /\bsent or not\b/i, plain: 'outcome unknown', example: 'sent or not, that is open' },
  {
    pattern: /\botherwise than\b/i,
    plain: 'differently, changed',
    example: 'what behaves otherwise than it did',
  },
  {
    pattern: /\b(?:after|for|within|in) so (?:many|long|much|often)\b/i,
    plain: 'the number, or the name of the setting',
    example: 'trusted for so long',
  },
  { pattern: /\bon (?:its|their) way\b/i, plain: 'in flight', example: 'while it was on its way' },
  {
    pattern: /\bin the turn in which\b/i,
    plain: 'synchronously',
    example: 'not out in the turn in which it came',
  },
  {
    pattern: /\b(?:blazing|seamless|effortless|world-class|cutting-edge|powerful)(?:ly)?\b/i,
    plain: 'a figure, or nothing',
    example: 'a blazing fast gateway',
  },
]

/** Running text of a page: without code and line breaks. */
const proseOf = (markdown: string): string =>
  markdown
    .replaceAll(/^```[\s\S]*?^```$/gm, '')
    .replaceAll(/`[^`\n]*`/g, '…')
    .replaceAll(/\]\([^)]*\)/g, ']')
    .replaceAll(/\s+/g, ' ')

const commentsOf = (source: string): string =>
  proseOf(
    (source.match(/(?<=^|\s)(?:\/\*[\s\S]*?\*\/|\/\/ .*$)/gm) ?? [])
      .map((comment) => comment.replaceAll(/^\s*\*\s/gm, ''))
      .join('\n. '),
  )

/** Comments of a source file, and the texts of more than one word that it writes into logs, errors and documents. */
const wordsOfSource = (source: string): string => {
  const texts = source.match(/(?<=[\s(:[])'[^'\n]* [^'\n]*'/g) ?? []
  return `${commentsOf(source)}. ${proseOf(texts.join('\n. '))}`
}

/** Titles of tests and suites. */
const titlesOf = (source: string): string =>
  [...source.matchAll(/\b(?:test|describe)(?:\.\w+|With)?\([^\n]*?(?:'([^'\n]+)'|`([^`\n]+)`|"([^"\n]+)")/g)]
    .map(([, single, template, double]) => single ?? template ?? double ?? '')
    .join('. ')

const sourcesIn = async (folder: string, end: string): Promise<string[]> =>
  (await readdir(folder, { recursive: true }))
    .filter((file) => file.endsWith(end))
    .map((file) => `${folder}/${file}`)

type Scope = {
  readonly title: string
  readonly files: () => Promise<readonly string[]>
  readonly textOf: (content: string) => string
}

/** Comments of a file with `#` before them. */
const hashCommentsOf = (source: string): string => (source.match(/(?<=^|\s)# .*$/gm) ?? []).join('\n. ')

/** Texts and comments of the status page. */
const wordsOfPage = (source: string): string =>
  source.startsWith('<')
    ? source.replaceAll(/<[^>]*>/g, '\n. ')
    : `${wordsOfSource(source)}. ${proseOf((source.match(/`[^`]* [^`]*`/g) ?? []).join('\n. '))}`

const scopes: readonly Scope[] = [
  {
    title: 'documents',
    files: async () => [
      'README.md',
      'CONTRIBUTING.md',
      'CHANGELOG.md',
      ...(await sourcesIn('deploy', '.md')),
      ...(await readdir('docs', { recursive: true }))
        .filter((file) => file.endsWith('.md'))
        .map((file) => `docs/${file}`),
    ],
    textOf: proseOf,
  },
  {
    title: 'comments of configurations',
    files: async () => [
      'compose.yaml',
      ...(await sourcesIn('config', '.yaml')),
      ...(await sourcesIn('deploy', '.yaml')),
      ...(await sourcesIn('deploy', '.service')),
    ],
    textOf: hashCommentsOf,
  },
  {
    title: 'status page',
    files: async () => [
      ...(await sourcesIn('public/status', '.html')),
      ...(await sourcesIn('public/status', '.js')),
    ],
    textOf: wordsOfPage,
  },
  {
    title: 'comments and texts of src',
    files: () => sourcesIn('src', '.ts'),
    textOf: wordsOfSource,
  },
  {
    title: 'comments and texts of the demo, the benchmark, the dashboards and CI',
    files: async () => [
      'build.mjs',
      ...(await sourcesIn('demo', '.ts')),
      ...(await sourcesIn('bench', '.ts')),
      ...(await sourcesIn('dashboards/source', '.ts')),
      ...(await sourcesIn('.ci', '.mjs')),
    ],
    textOf: wordsOfSource,
  },
  {
    title: 'comments and texts of the companion',
    files: () => sourcesIn('deploy', '.php'),
    textOf: wordsOfSource,
  },
  {
    title: 'descriptions of arguments',
    files: () => sourcesIn('src', '.json'),
    textOf: (content) =>
      Object.values(JSON.parse(content) as Record<string, Record<string, string>>)
        .flatMap((texts) => Object.values(texts))
        .join('\n. '),
  },
  { title: 'titles of tests', files: () => sourcesIn('test', '.test.ts'), textOf: titlesOf },
  { title: 'comments of tests', files: () => sourcesIn('test', '.ts'), textOf: commentsOf },
]

const findingsIn = (text: string): string[] =>
  banned.flatMap(({ pattern, plain }) =>
    [...text.matchAll(new RegExp(pattern.source, `${pattern.flags}g`))].map(
      ({ 0: found, index }) =>
        `"${found}" in "${text.slice(Math.max(0, index - 40), index + found.length + 30)}": write ${plain}`,
    ),
  )

test.each(banned)('a text with "$example" is found', ({ pattern, example }) => {
  expect(proseOf(`Some words.\n${example}`)).toMatch(pattern)
})

test.each(scopes)('no phrase of the list occurs in the $title', async ({ files, textOf }) => {
  const searched = await files()
  expect(searched.length).toBeGreaterThan(0)
  const findings = await Promise.all(
    searched.map(async (file) =>
      findingsIn(textOf(await readFile(file, 'utf8'))).map((finding) => `${file}: ${finding}`),
    ),
  )
  expect(findings.flat()).toEqual([])
})
