"""Words that are common in names and addresses of shops whatever labelled documents there are: trades, places, streets.

English and Malay, because that is what the receipts are in that the shipped model learned from; training adds the words
of the labelled documents.
"""

TRADES = """
accessories advertising agency auto bakeries bakery beauty bicycle bistro book books bookshop bookstore
boutique building bunga burger butchery cafe cafeteria cake cakes camera car carpet cash catering cell centre
center ceramic chemist chicken clinic clothing coffee cold company computer confectionery construction
convenience corner corporation cosmetics curtain cycle daily deco decoration dental department design
distribution distributor drink drug electric electrical electronic electronics emporium engineering enterprise
enterprises express fashion fast fish flora florist food foods footwear fresh frozen fruit fruits furnishing
furniture gallery gas general gift gifts glass global gold gourmet grill grocer grocery group guardian gym
handicraft hardware health healthcare holding holdings home hotel house household industries industry
international jaya jewellery kedai kitchen kopitiam laundry leisure lighting machinery maju malaysia
management manufacturing market marketing mart materials megamall medical mini minimarket mobile motor motors
music noodle optical optic paint paper parking pasar pasaraya pastry perabot perniagaan perusahaan petrol
pharmacy photo pizza plastic plastics plumbing print printing products pub pusat resources restaurant
restaurants restoran retail rice roti runcit sales salon sdn bhd seafood services service shoes shop shopping
snacks solutions spa speed sport sports star station stationers stationery steamboat stone store stores studio
subway super supermarket supplies supply sushi syarikat systems tailoring tea tech technology
telecommunications textile tiles timber tools toys trade trading travel tyre tyres utama vegetable venture
ventures vision watch wholesale
"""

PLACES = """
ampang alor ara arau bahru baling bandar bangi banting baru batang batu bayan bentong berhad bintulu bukit
butterworth cameron cheras cyberjaya damansara dengkil ehsan gajah georgetown gombak hang highlands hulu ipoh
jasin jaya johor kajang kali kampar kangar kapar kedah kelana kelang kelantan kembangan keningau kepong
keramat klang kluang kota kuala kuantan kuching kulai kulim labuan labu langat langkawi lumpur malacca
malaysia masai melaka melawati miri muar negeri nibong nilai pagoh pahang pasir penang perai perak perdana
perlis permas petaling pinang pontian puchong pulau putrajaya raja rawang sabah salak sandakan sarawak segamat
segambut sekinchan selangor selayang semenyih senai sepang serdang seremban seri setapak setia shah alam
sembilan sibu sitiawan skudai sri subang sungai sungei sunway taiping takzim tampin tanjong tanjung tawau
tebrau tebal teluk terengganu tawar ulu usj wangsa wilayah persekutuan
"""

STREETS = """
avenue bangunan basement batu blok block boulevard building business central centre commercial complex court
dagangan dalam darul dataran desa east fasa first floor gardens garden ground heights indah industrial
industri jalan jln kampung kawasan kompleks komersial laluan lebuh lebuhraya level lingkaran lorong lot lower
mahkota mall medan menara metro north off office park parade perindustrian persiaran pinggir plaza point pusat
raya residence road saujana second section seksyen sentral shopping simpang sixth south square street suite
taman tengah third tingkat tmn tower town unit upper utara utama village west wisma zon zone
"""

COMMON = 4
"""Groups that each of these words is taken to be used by, besides those that were counted."""


def with_vocabulary(words: dict[str, int]) -> dict[str, int]:
    """Learned counts, and those of the words above."""
    counts = dict(words)
    for word in {*TRADES.split(), *PLACES.split(), *STREETS.split()}:
        counts[word.upper()] = counts.get(word.upper(), 0) + COMMON
    return dict(sorted(counts.items()))
