import { type RequestCase, read, reads, words } from '../request-case.ts'

const brief = '_fields=id'

/** Integers, booleans, lists and dates in all their spellings, on the parameters of posts. */
const coercions: readonly string[] = words(`
  per_page=2.0 per_page=+2 per_page=%2B2 per_page=%202 per_page=2%20 per_page=02 per_page=1e1
  per_page=1E1 per_page=2e0 per_page=0.2e1 per_page=2. per_page=.2e1 per_page=2.5 per_page=
  per_page=two per_page=0x2 per_page=2, per_page=--2 per_page=-1 per_page=0 per_page=101 per_page=100
  per_page=9999999999999999999 per_page=1e400 per_page[]=2 per_page[0]=2 per_page[a]=2
  per_page=1&per_page=2 per_page=x&per_page=2 per_page=2%00 per_page=%D9%A2 per_page=null
  per_page=true page=0 page=-1 page=1.0 page=2&per_page=50 page=99 page=99&per_page=100
  page=11&per_page=10 page=12&per_page=10 offset=0 offset=3 offset=500 offset=-1 offset=
  offset=3&page=2 offset=1e1 offset=a sticky=true sticky=TRUE sticky=1 sticky=0 sticky=false
  sticky=False sticky=yes sticky=no sticky=on sticky= sticky=2 sticky[]=1 sticky=null sticky=%20true
  include=5,6 include=5%206 include=5+6 include[]=5&include[]=6 include[0]=5&include[1]=6
  include[5]=5&include[1]=6 include=5 include= include=, include=5,,6 include=5,5,6 include=5,x
  include[a]=5 include[]=x include[]= include[][]=5 include=5.0,6 include=5.5
  include=6,5&orderby=include include=5,6&orderby=include include[]=6&include[]=5&orderby=include
  include[]=5&include=6 include=6&include[]=5 include=999999 include=-5 exclude=5,6&per_page=3
  exclude[]=5&exclude[]=x exclude= author=1 author=1,2&per_page=3 author=x author_exclude=1
  after=2025-03-05T00:00:00 after=2025-03-05T00:00:00Z after=2025-03-05T00:00:00%2B02:00
  after=2025-03-05T00:00:00+02:00 after=2025-03-05%2000:00:00 after=2025-03-05t00:00:00z
  after=2025-03-05T00:00:00.5 after=2025-03-05 after=2025-13-05T00:00:00 after=yesterday after=
  after=2025-02-30T00:00:00 after=2025-03-05T25:00:00 after[]=2025-03-05T00:00:00 after=1741132800
  before=2025-03-05T00:00:00Z before=2025-03-05T00:00:00&after=2025-03-02T00:00:00 before=x
  modified_after=2025-03-05T00:00:00 modified_before=2020-01-01T00:00:00Z modified_after=nope
  categories=2 categories=2,3 categories[]=2&categories[]=3 categories[terms]=2,3
  categories[terms][]=2&categories[terms][]=3 categories[terms]=2,3&categories[operator]=AND
  categories[terms]=2&categories[include_children]=true categories[terms]=2&categories[operator]=XOR
  categories[operator]=AND categories=x categories[terms]=x categories= categories[foo]=2
  categories[terms]=2&categories[include_children]=maybe categories_exclude=2,3 categories_exclude=a
  categories_exclude[terms]=2&categories_exclude[include_children]=1 categories_exclude[operator]=AND
  tags=8 tags=8,9&tax_relation=AND tags=8&categories=2&tax_relation=OR tax_relation=NOR
  tags[terms]=8,9&tags[operator]=AND tags_exclude=8 tags=999999 tags[]=8&tags[]=nine`)

const texts: readonly string[] = words(`
  search=day search=DAY search=%20day%20 search= search=0 search[]=day search=plant%20of
  search=%22plant%20of%22 search=-day search=caf%C3%A9 search=%F0%9F%8C%B1 search=%E2%80%AE
  search=a%26b search=%25 search=a%2Cb search='%20OR%201=1 search=%3Cb%3E search=%0A
  search=day&search_columns=post_title search=day&search_columns=post_title,post_content
  search_columns=title search_columns[]=post_title&search_columns[]=nope search_columns=
  slug=hello-world slug=hello-world,plant-of-the-day-2 slug[]=hello-world slug= slug=007
  slug=Hello-World slug=caf%C3%A9 slug[a]=x slug=hello-world&orderby=slug slug=%2F orderby=date
  orderby=title&order=asc orderby=id&order=asc orderby=relevance orderby=bar
  orderby=relevance&search=day orderby=modified orderby=author&order=asc orderby=slug orderby=parent
  orderby=include orderby=include_slugs orderby=Date orderby= orderby[]=date orderby=rand order=asc
  order=desc order=ASC order=up order= order[]=asc status=publish status=PUBLISH status=draft
  status=publish,draft status=any status=zzz status[]=publish status= status=publish,zzz
  status[a]=publish status=trash status=private context=view context=embed context=foo context=
  context=VIEW context[]=view context=edit context=foo&orderby=bar&status=zzz
  per_page=101&page=0&order=foo page=0&per_page=0 orderby=bar&after=x&include=a sticky=yes&order=up
  status=zzz&sticky=yes status=draft&per_page=0`)

/** What every route takes, and what none does. */
const globals: readonly string[] = words(`
  _fields=id _fields=id,title.rendered _fields[]=id&_fields[]=slug _fields= _fields=nope
  _fields=id,_links _fields=_links.self _fields=title,title.rendered,id _fields=id%20slug _fields=%20
  _embed _embed=1 _embed=true _embed=0 _embed=author _embed=author,wp:term _embed[]=author _embed=nope
  _embed=wp:featuredmedia&_fields=id,_links,_embedded _envelope _envelope=1 _envelope=0
  _envelope=1&page=99 _envelope=1&per_page=0 _pretty _pretty=1 _pretty=0 _locale=user _locale=de
  _jsonp=cb _jsonp=a.b _jsonp=a-b _jsonp= _jsonp=alert(1) _jsonp=cb&per_page=0 _jsonp[]=cb
  _wpnonce=bad utm_source=mail foo=bar foo[]=1&foo[a]=2 _foo=1 =5 && %00=1 per_page per.page=3
  per%20page=3 per[page=3 %20per_page=3 per_page%00x=3 PER_PAGE=3 per-page=3 $top=5&$skip=1
  $filter=title%20eq%20'x' $orderby=date%20desc $select=id %24count=true $expand=author
  per_page=3;page=2 per_page=3%26page=2 per_page=3&amp;page=2 per_page=%33 p%65r_page=3 per_page=3&&
  filter[posts_per_page]=1 filter=%7B%7D limit=1 q=day s=day p=5 post_type=page preview=true`)

/** What the listed collections take besides. */
const others: readonly RequestCase[] = [
  ...reads(
    '/wp/v2/pages',
    words(`
  per_page=3 parent=0 parent=112 parent[]=112&parent[]=0 parent_exclude=112 parent=x menu_order=3
  menu_order=-1 menu_order=x orderby=menu_order&order=asc orderby=parent sticky=1 orderby=relevance
  page=2&per_page=9 page=5 categories=2 status=draft search=Garden _embed`),
  ),
  ...reads(
    '/wp/v2/media',
    words(`
  per_page=2 media_type=image media_type=video media_type=nope mime_type=image/png mime_type=x
  parent=4 parent=0 status=inherit status=publish status=private status=trash search=Leaf media_type=
  mime_type= orderby=menu_order context=embed page=9 _embed&_fields=id,_links`),
  ),
  ...reads(
    '/wp/v2/blocks',
    words(`
  per_page=2 search=Block wp_pattern_category=1 wp_pattern_category=x status=draft`),
  ),
  ...reads(
    '/wp/v2/blocks',
    words(`
  per_page=2 wp_pattern_category=1 wp_pattern_category_exclude=1 orderby=slug page=9`),
    'admin',
  ),
  ...reads(
    '/wp/v2/navigation',
    words(`
  per_page=1 orderby=bar status=publish search=Nav menu_order=1`),
  ),
  ...reads(
    '/wp/v2/menu-items',
    words(`
  per_page=5 menus=15 orderby=menu_order per_page=0 menu_order=x`),
  ),
  ...reads(
    '/wp/v2/menu-items',
    words(`
  per_page=5 menus=15 menus_exclude=15 order=desc page=2&per_page=5 tax_relation=AND`),
    'admin',
  ),
  ...reads(
    '/wp/v2/templates',
    words(`
  area=header post_type=post wp_id=1 wp_id=x context=edit`),
  ),
  ...reads(
    '/wp/v2/templates',
    words(`
  _fields=id,wp_id wp_id=x wp_id=0&_fields=id area=header&_fields=id post_type=page&_fields=id`),
    'admin',
  ),
  ...reads('/wp/v2/template-parts', ['area=header&_fields=id,area,wp_id', 'area[]=header'], 'editor'),
  ...reads(
    '/wp/v2/template-parts',
    ['area=header&_fields=id,area,wp_id', 'area[]=header', 'context=nope'],
    'admin',
  ),
  ...reads('/wp/v2/templates/lookup', [
    'slug=home',
    'slug=home&is_custom=yes',
    'is_custom=true',
    'slug[]=home',
  ]),
  ...reads(
    '/wp/v2/templates/lookup',
    ['slug=home&_fields=id', 'slug=page-x&template_prefix=page&_fields=id,slug', 'slug='],
    'admin',
  ),
]

export const listCases: readonly RequestCase[] = [
  read('/wp/v2/posts'),
  ...reads(
    '/wp/v2/posts',
    coercions.map((query) => `${query}&${brief}`),
  ),
  ...reads(
    '/wp/v2/posts',
    texts.map((query) => `${query}&${brief},slug`),
  ),
  ...reads('/wp/v2/posts', globals),
  ...reads(
    '/wp/v2/posts',
    words(`
  status=draft status=any&per_page=3 context=edit&per_page=1 status=trash status=zzz per_page=0`),
    'admin',
  ),
  ...reads(
    '/wp/v2/posts',
    ['status=draft', 'status=private', 'context=edit&per_page=1', 'status=publish,draft'],
    'subscriber',
  ),
  ...reads(
    '/wp/v2/posts',
    ['status=draft,pending', 'context=edit&per_page=1', 'author=2&per_page=2'],
    'editor',
  ),
  ...others,
]
