"""The names of the months in the languages documents come in, folded as `texts.bare` folds."""

from docmill.extraction.values.texts import bare

# Not Croatian: its October is the November of Poles and Czechs (`listopada`).
_LANGUAGES = {
    "english": "january february march april may june july august september october november december",
    "german": "januar februar märz april mai juni juli august september oktober november dezember",
    "austrian": "jänner feber märz april mai juni juli august september oktober november dezember",
    "french": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "italian": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "spanish": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "catalan": "gener febrer març abril maig juny juliol agost setembre octubre novembre desembre",
    "dutch": "januari februari maart april mei juni juli augustus september oktober november december",
    "portuguese": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "polish": "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień",
    "polish_of": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "czech": "leden únor březen duben květen červen červenec srpen září říjen listopad prosinec",
    "czech_of": "ledna února března dubna května června července srpna září října listopadu prosince",
    "slovak": "január február marec apríl máj jún júl august september október november december",
    "slovak_of": "januára februára marca apríla mája júna júla augusta septembra októbra novembra decembra",
    "swedish": "januari februari mars april maj juni juli augusti september oktober november december",
    "danish": "januar februar marts april maj juni juli august september oktober november december",
    "norwegian": "januar februar mars april mai juni juli august september oktober november desember",
    "finnish": "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta syyskuuta "
    "lokakuuta marraskuuta joulukuuta",
    "hungarian": "január február március április május június július augusztus szeptember október november december",
    "romanian": "ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie",
    "turkish": "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",
    "malay": "januari februari mac april mei jun julai ogos september oktober november disember",
    "indonesian": "januari februari maret april mei juni juli agustus september oktober november desember",
    "slovene": "januar februar marec april maj junij julij avgust september oktober november december",
    "estonian": "jaanuar veebruar märts aprill mai juuni juuli august september oktoober november detsember",
    "latvian": "janvāris februāris marts aprīlis maijs jūnijs jūlijs augusts septembris oktobris novembris decembris",
    "lithuanian_of": "sausio vasario kovo balandžio gegužės birželio liepos rugpjūčio rugsėjo spalio lapkričio "
    "gruodžio",
    "serbian": "januar februar mart april maj jun jul avgust septembar oktobar novembar decembar",
    "serbian_of": "januara februara marta aprila maja juna jula avgusta septembra oktobra novembra decembra",
    "greek": "Ιανουάριος Φεβρουάριος Μάρτιος Απρίλιος Μάιος Ιούνιος Ιούλιος Αύγουστος Σεπτέμβριος Οκτώβριος "
    "Νοέμβριος Δεκέμβριος",
    "greek_of": "Ιανουαρίου Φεβρουαρίου Μαρτίου Απριλίου Μαίου Ιουνίου Ιουλίου Αυγούστου Σεπτεμβρίου Οκτωβρίου "
    "Νοεμβρίου Δεκεμβρίου",
    "bulgarian": "януари февруари март април май юни юли август септември октомври ноември декември",
    "russian": "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь",
    "russian_of": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "ukrainian_of": "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
}
_SHORT = {
    1: "jan janv gen ene sty led ian jän",
    2: "feb febr fév févr lut fev úno şub",
    3: "mar märz mär mrz mrt bře mac mars",
    4: "apr avr abr kwi dub nis",
    5: "may mai mag mei maj kvě mayo",
    6: "jun juin giu cze čvn haz",
    7: "jul juil lug lip čvc jui tem",
    8: "aug août aou ago sie srp ogo ogos ağu aoû",
    9: "sep sept set wrz zář eyl",
    10: "oct okt ott out paź říj eki",
    11: "nov lis kas",
    12: "dec dez déc dic gru pro des dis ara",
}


def _names() -> dict[str, int]:
    names = {bare(short): month for month, shorts in _SHORT.items() for short in shorts.split()}
    for language in _LANGUAGES.values():
        for month, name in enumerate(language.split(), start=1):
            names.setdefault(bare(name), month)
    return names


MONTHS = _names()
"""By folded name."""
NAMES = {language: tuple(names.split()) for language, names in _LANGUAGES.items()}
"""By language, as they are written."""
